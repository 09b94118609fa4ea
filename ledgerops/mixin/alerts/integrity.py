"""The alerts of the rules that watch money: pages, since figures that look healthy are wrong."""

from types import ModuleType

from ledgerops.diagnosis.rules import conflicting_duplicates, ledger_imbalance
from ledgerops.mixin.alerts.model import Alert, Case
from ledgerops.mixin.alerts.promql import of_rule


def _page(module: ModuleType, name: str, summary: str, description: str) -> Alert:
    slug: str = module.RULE.slug
    series = f'ledgerops_finding{{rule="{slug}", severity="critical"}}'

    return Alert(
        name=name,
        severity="critical",
        expression=lambda site: of_rule(site, "ledgerops_finding", slug),
        hold=0.0,  # a fact, which is exported for minutes after the last wrong batch
        keep=600.0,  # the next batches may be right; what is written stays wrong
        summary=summary,
        description=description,
        rule=slug,
        cases=(
            Case("fires", "two scrapes found it", {series: "_x8 1x1 stale"}, 150, True),
            Case("fires", "some minutes later, too", {series: "_x8 1x1 stale"}, 600, True),
            Case("stays quiet", "something else is found", {'ledgerops_finding{rule="late-data"}': "1x40"}, 500, False),
            Case("resolves", "a quarter of an hour later", {series: "_x8 1x3 stale"}, 1200, False),
            Case("series vanishes", "the query ended long ago", {series: "1x8 stale"}, 1200, False),
            Case("query restarts", "and nothing is found", {"ledgerops_query_active": "1x8 stale 1x8"}, 240, False),
        ),
    )


IMBALANCE = _page(
    ledger_imbalance, "LedgerImbalance", "A job that must conserve money wrote different rows or amounts than it read.",
    "What {{ $labels.query }} wrote does not match what it read: rows or money were lost or created on the way.",
)  # fmt: skip
CONFLICTS = _page(
    conflicting_duplicates, "LedgerConflictingDuplicates", "Copies of one transaction contradict each other.",
    "{{ $labels.query }} found copies of transactions that differ from the first one with the same id.",
)  # fmt: skip
