"""The alert of the rule source-unreachable: the broker does not answer."""

from ledgerops.mixin.alerts.model import Alert, Case, of
from ledgerops.mixin.alerts.promql import ACTIVE, BY
from ledgerops.mixin.site import Site

REACHABLE = "ledgerops_source_reachable"
RULE = "source-unreachable"
FOUND = 'ledgerops_finding{rule="source-unreachable", severity="critical"}'
FOUND_ON_A = of("ledgerops_finding", instance="a:1", rule=RULE, severity="critical")


def _expression(site: Site) -> str:
    """What a run ended with is no news of the broker, also where another driver runs the query since."""
    matcher = f'rule="{RULE}"'
    runs = f"and on (job, app, instance, query) {site.series(ACTIVE)} == 1"
    return f"max {BY} ({site.series('ledgerops_finding', matcher)} == 1 {runs})"


ALERT = Alert(
    name="LedgerSourceUnreachable", severity="critical",
    # the finding and not the gauge, which is 0 as well where only ledgerops cannot reach the broker
    expression=_expression,
    hold=10.0,  # the rule has waited before
    summary="A query's broker does not answer.",
    description="The broker that {{ $labels.query }} reads from does not answer ledgerops.", rule="source-unreachable",
    page="ledgerops-query",
    inhibits=(
        "LedgerQueryStuck", "LedgerFallingBehind", "LedgerTriggerOverrun", "LedgerFreshnessPage",
        "LedgerFreshnessTicket",
    ),
    cases=(
        Case("fires", "it is found", {ACTIVE: "1x30", REACHABLE: "1x8 0x20", FOUND: "_x10 1x20"}, 240, True),
        Case("stays quiet", "the query failed because of it: LedgerQueryFailed fires",
             {ACTIVE: "1x8 0x30", FOUND: "_x8 1x30"}, 400, False),
        Case("stays quiet", "and it was started on another driver",
             {of(ACTIVE, instance="a:1"): "1x8 0x30", FOUND_ON_A: "_x8 1x30", of(ACTIVE, instance="b:1"): "_x8 1x30"},
             400, False),
        Case("stays quiet", "Spark reaches it, and ledgerops does not", {REACHABLE: "1x8 0x40"}, 300, False),
        Case("resolves", "it answers again", {ACTIVE: "1x40", FOUND: "_x8 1x8 stale"}, 500, False),
        Case("series vanishes", "the query ended", {ACTIVE: "1x12 0x30", FOUND: "_x8 1x4 stale"}, 500, False),
        Case("query restarts", "with the broker there", {REACHABLE: "1x8 stale 1x20"}, 240, False),
    ),
)  # fmt: skip
