"""alerts/runbooks: one page for each alert, from the docstring of the alert or of its rule."""

from __future__ import annotations

from collections.abc import Mapping

from ledgerops.mixin.alerts import ALERTS
from ledgerops.mixin.alerts.model import Alert
from ledgerops.mixin.reference import HEAD, runbook_body
from ledgerops.mixin.rule_files import FILES
from ledgerops.mixin.site import Site

FILE_OF = {alert.name: name for name, alerts in FILES.items() for alert in alerts}


def runbook_pages(site: Site) -> Mapping[str, str]:
    """`<Alert>.md` -> text."""
    pages = {f"{alert.name}.md": _page(alert) for alert in ALERTS}
    rows = "".join(f"| [{alert.name}]({alert.name}.md) | {alert.severity} | {alert.summary} |\n" for alert in ALERTS)
    pages["README.md"] = (
        f"{HEAD}# Runbooks\n\nOne page for each alert. critical = act now, warning = act today, info = know it. "
        "The alert of a cause is info: it adds to the alert of the symptom.\n\n"
        "| alert | severity | what it says |\n|---|---|---|\n" + rows
    )
    return pages


def _page(alert: Alert) -> str:
    """Meaning, Impact, Diagnosis and Mitigation; formulas and expressions are one link away."""
    title = alert.runbook.strip().splitlines()[0]
    more = (
        f"Formulas and the numbers of a finding: [rule {alert.rule}](../../docs/rules/{alert.rule}.md). "
        if alert.rule
        else ""
    )
    return (
        f"{HEAD}# {alert.name}\n\n{title}\n\nSeverity: {alert.severity}.\n\n{runbook_body(alert.runbook)}\n\n---\n\n"
        f"{more}Expression: [{FILE_OF[alert.name]}.yaml](../rules/{FILE_OF[alert.name]}.yaml).\n"
    )
