"""An alert for each cause that the diagnosis names, never a page: it goes with the page of its symptom, as information.

A cause that explains nothing comes before any symptom, or without one: it is as severe as its rule.
"""

from ledgerops.diagnosis.rule import Rule
from ledgerops.metrics.cause_texts import CAUSE_TEXTS
from ledgerops.mixin.alerts.model import Alert, Case
from ledgerops.mixin.alerts.promql import of_rule


def name_of(slug: str) -> str:
    """The alert of a rule: `key-skew` -> `LedgerKeySkew`."""
    return "Ledger" + "".join(word.capitalize() for word in slug.split("-"))


def ticket(rule: Rule) -> Alert:
    """The alert that says: this rule is a root cause now."""
    series = f'ledgerops_root_cause{{rule="{rule.slug}"}}'
    text = CAUSE_TEXTS[rule.slug]
    return Alert(
        name=name_of(rule.slug),
        severity="info" if rule.explains else rule.severity,
        expression=lambda site: of_rule(site, "ledgerops_root_cause", rule.slug),
        hold=30.0,
        summary=text.summary,
        description=f"Root cause of {{{{ $labels.query }}}}: {rule.slug}.",
        rule=rule.slug,
        of_cause=True,
        cases=(
            Case("fires", "it is named", {series: "1x20"}, 240, True),
            Case("stays quiet", "another cause is named", {'ledgerops_root_cause{rule="another"}': "1x20"}, 240, False),
            Case("resolves", "it is named no more", {series: "1x12 stale"}, 600, False),
            Case("series vanishes", "after half a minute", {series: "1x2 stale"}, 120, False),
            Case("query restarts", "a moment's finding", {series: "_x8 1x1 stale"}, 240, False),
        ),
    )
