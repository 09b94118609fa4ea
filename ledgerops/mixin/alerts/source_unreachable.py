"""The alert of the rule source-unreachable: the broker does not answer."""

from ledgerops.diagnosis.facts.source_silence import MIN_UNANSWERED_SECONDS
from ledgerops.mixin.alerts.model import Alert, Case
from ledgerops.mixin.alerts.promql import BY

JUDGED_SECONDS = 5.0  # after which a query without news is judged again
REACHABLE = "ledgerops_source_reachable"


ALERT = Alert(
    name="LedgerSourceUnreachable", severity="critical",
    expression=lambda site: f"max {BY} ({site.series(REACHABLE)}) == 0", hold=30.0,
    least=MIN_UNANSWERED_SECONDS + JUDGED_SECONDS, summary="A query's broker does not answer.",
    description="The broker that {{ $labels.query }} reads from does not answer ledgerops.", rule="source-unreachable",
    page="ledgerops-query",
    inhibits=(
        "LedgerQueryStuck", "LedgerFallingBehind", "LedgerTriggerOverrun", "LedgerFreshnessPage",
        "LedgerFreshnessTicket",
    ),
    cases=(
        Case("fires", "no answer for two minutes", {REACHABLE: "1x8 0x20"}, 240, True),
        Case("stays quiet", "one failed request", {REACHABLE: "1x8 0x1 1x20"}, 180, False),
        Case("resolves", "it answers again", {REACHABLE: "1x8 0x8 1x40"}, 500, False),
        Case("series vanishes", "the query ended", {REACHABLE: "1x8 0x4 stale"}, 500, False),
        Case("query restarts", "with the broker there", {REACHABLE: "1x8 stale 1x20"}, 240, False),
    ),
)  # fmt: skip
