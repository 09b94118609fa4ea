"""An alert for each cause that the diagnosis names, never a page: it goes with the page of its symptom, as information.

A cause that explains no symptom that is told comes before any, or without one: it is as severe as its rule.
"""

from collections.abc import Container

from ledgerops.diagnosis.rule import Rule
from ledgerops.metrics.cause_texts import CAUSE_TEXTS
from ledgerops.mixin.alerts.model import Alert, Case
from ledgerops.mixin.alerts.promql import of_rule


def name_of(slug: str) -> str:
    """The alert of a rule: `key-skew` -> `LedgerKeySkew`."""
    return "Ledger" + "".join(word.capitalize() for word in slug.split("-"))


def ticket(rule: Rule, symptoms: Container[str | None]) -> Alert:
    """The alert that says: this rule is a root cause now. `symptoms` are the rules that have an alert of their own."""
    severity = "info" if any(slug in symptoms for slug in rule.explains) else rule.severity
    listed = severity == "info"  # else it is told of, unless it harms nothing yet
    metric, more = ("ledgerops_root_cause", ()) if listed else ("ledgerops_root_cause_info", ('severity!="info"',))
    label = "" if listed else ', severity="warning"'
    series = f'{metric}{{rule="{rule.slug}"{label}}}'
    harmless = {f'{metric}{{rule="{rule.slug}", severity="info"}}': "1x20"}
    quiet = () if listed else (Case("stays quiet", "it harms nothing yet", harmless, 240, False),)
    text = CAUSE_TEXTS[rule.slug]
    return Alert(
        name=name_of(rule.slug),
        severity=severity,
        expression=lambda site: of_rule(site, metric, rule.slug, *more),
        hold=30.0,
        summary=text.summary,
        description=f"Root cause of {{{{ $labels.query }}}}: {rule.slug}.",
        rule=rule.slug,
        of_cause=True,
        cases=(
            Case("fires", "it is named", {series: "1x20"}, 240, True),
            Case("stays quiet", "another cause is named", {f'{metric}{{rule="another"{label}}}': "1x20"}, 240, False),
            *quiet,
            Case("resolves", "it is named no more", {series: "1x12 stale"}, 600, False),
            Case("series vanishes", "after half a minute", {series: "1x2 stale"}, 120, False),
            Case("query restarts", "a moment's finding", {series: "_x8 1x1 stale"}, 240, False),
        ),
    )
