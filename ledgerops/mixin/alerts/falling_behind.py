"""The alert of the rule falling-behind: results are old and the backlog grows."""

from ledgerops.mixin.alerts.model import Alert, Case
from ledgerops.mixin.alerts.promql import ACTIVE, LAG, grows, of_ending, too_old, total
from ledgerops.mixin.site import Site

TOTAL = "query:backlog:offsets"
BACKLOG = "ledgerops_query_backlog_offsets"


def records(site: Site) -> list[tuple[str, str]]:
    """The recording rule (name, expression) that the alert is made of: summing the partitions of thousands of queries
    twenty times an evaluation, as a subquery does, takes seconds."""
    return [(TOTAL, total(site, BACKLOG))]


def _expression(site: Site) -> str:
    return f"{too_old(site)} and on (job, app, query) {grows(site, site.series(TOTAL))}"


ALERT = Alert(
    name="LedgerFallingBehind", severity="critical", expression=_expression, hold=60.0,
    summary="A query is falling behind its input.",
    description=(
        "{{ $labels.query }} is reading rows that are {{ $value | humanizeDuration }} old, and its backlog has been "
        "growing for five minutes."
    ),
    names_cause=True, rule="falling-behind", inhibits=("LedgerTriggerOverrun", "LedgerFreshnessTicket"),
    cases=(
        Case("fires", "backlog and lag grow", {BACKLOG: "0+1000x80", LAG: "0+2x80", ACTIVE: "1x80"}, 900, True),
        Case("fires", "batches of ten minutes, each of which is told of when it begins",
             {BACKLOG: "1000x40 2000x40 3000x60", LAG: "0+15x140", ACTIVE: "1x140"}, 1700, True),
        Case("stays quiet", "a query that ends by itself",
             {BACKLOG: "0+1000x80", LAG: "0+2x80", ACTIVE: "1x80", of_ending(): "1x80"}, 900, False),
        Case("stays quiet", "a trigger of ten minutes",
             {BACKLOG: "0+1000x80", LAG: "0+15x80", "ledgerops_trigger_interval_seconds": "600x80"}, 900, False),
        Case("stays quiet", "a large backlog that shrinks", {BACKLOG: "90000-1000x80", LAG: "300-2x80"}, 900, False),
        Case("stays quiet", "a saw-tooth under a trigger of a minute",
             {BACKLOG: "0 500 1000 1500 0 500 1000 1500 0 500 1000 1500 0 500 1000 1500 0 500 1000 1500",
              LAG: "15x80"}, 280, False),
        Case("resolves", "the backlog clears",
             {BACKLOG: "0+1000x60 60000-2000x30 0x60", LAG: "0+2x60 120-4x30 0x60"}, 1800, False),
        Case("series vanishes", "the query ended", {BACKLOG: "0+1000x40 stale", LAG: "0+2x40 stale"}, 1500, False),
        Case("query restarts", "catching up after a restart",
             {BACKLOG: "0x8 60000-800x70", LAG: "0x8 180-2x70"}, 600, False),
    ),
)  # fmt: skip
