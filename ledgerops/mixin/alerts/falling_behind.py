"""The alert of the rule falling-behind: results are old, and the query falls further behind with each batch."""

from ledgerops.mixin.alerts.model import Alert, Case, of
from ledgerops.mixin.alerts.promql import ACTIVE, LAG, falls_behind, of_ending, saw_tooth
from ledgerops.mixin.alerts.table_behind import FOUND, VERSIONS, unread
from ledgerops.mixin.site import Site

RULE = "falling-behind"
BACKLOG = "ledgerops_query_backlog_offsets"


def _expression(site: Site) -> str:
    """Of tables LedgerTableBehind tells."""
    return f"{falls_behind(site)} unless on (job, app, query) {unread(site)}"


ALERT = Alert(
    name="LedgerFallingBehind", severity="critical", expression=_expression, hold=60.0,
    summary="A query is falling behind its input.",
    description=(
        "{{ $labels.query }} is reading rows that are {{ $value | humanizeDuration }} old, and falls further behind "
        "with each batch."
    ),
    names_cause=True, rule=RULE, inhibits=("LedgerTriggerOverrun", "LedgerFreshnessTicket"),
    cases=(
        Case("fires", "it is found, and rows get old", {FOUND: "_x8 1x80", LAG: "0+2x80", ACTIVE: "1x80"}, 660, True),
        Case("stays quiet", "it is found, and results are still fresh",
             {FOUND: "1x80", LAG: "50x80", ACTIVE: "1x80"}, 900, False),
        *(Case("stays quiet", f"batches of {minutes} minutes, in which the backlog rises and falls",
               {BACKLOG: saw_tooth(minutes), LAG: saw_tooth(minutes), ACTIVE: "1x80"}, 765, False)
          for minutes in (3, 4, 6)),
        Case("stays quiet", "a query that ends by itself",
             {FOUND: "1x80", LAG: "0+2x80", ACTIVE: "1x80", of_ending(): "1x80"}, 900, False),
        Case("stays quiet", "a trigger of ten minutes",
             {FOUND: "1x80", LAG: "0+15x80", ACTIVE: "1x80", "ledgerops_trigger_interval_seconds": "600x80"}, 900,
             False),
        Case("stays quiet", "a table whose versions wait: LedgerTableBehind fires",
             {FOUND: "1x80", LAG: "0+2x80", ACTIVE: "1x80", of(VERSIONS, source="orders"): "0+2x80"}, 900, False),
        Case("resolves", "the backlog clears", {FOUND: "1x60 stale", LAG: "0+2x60 120-4x30 0x60", ACTIVE: "1x150"},
             1800, False),
        Case("series vanishes", "the query ended",
             {FOUND: "1x80", LAG: "0+2x40 stale", ACTIVE: "1x40 0x40"}, 1500, False),
        Case("query restarts", "catching up on another driver",
             {of("ledgerops_finding", instance="a:1", rule=RULE, severity="critical"): "1x80",
              of(ACTIVE, instance="a:1"): "1x8 0x80", of(ACTIVE, instance="b:1"): "_x8 1x80", LAG: "0x8 180-2x70"},
             600, False),
    ),
)  # fmt: skip
