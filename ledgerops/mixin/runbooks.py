"""alerts/runbooks: one page an alert, from the docstring of the alert or of its rule."""

from __future__ import annotations

from collections.abc import Mapping

from ledgerops.mixin.alerts import ALERTS
from ledgerops.mixin.alerts.model import Alert
from ledgerops.mixin.alerts.promql import lines
from ledgerops.mixin.reference import HEAD, runbook_body
from ledgerops.mixin.site import Site


def runbook_pages(site: Site) -> Mapping[str, str]:
    """`<Alert>.md` -> text."""
    pages = {f"{alert.name}.md": _page(alert, site) for alert in ALERTS}
    rows = "".join(f"| [{alert.name}]({alert.name}.md) | {alert.severity} | {alert.summary} |\n" for alert in ALERTS)
    pages["README.md"] = (
        f"{HEAD}# Runbooks\n\nOne page an alert. critical = act now, warning = act today, info = know it: causes are "
        "information that goes with the page of their symptom.\n\n| alert | severity | what it says |\n|---|---|---|\n"
        + rows
    )
    return pages


def _page(alert: Alert, site: Site) -> str:
    rule = f" The rule `{alert.rule}` of `ledgerops diagnose` sees the same." if alert.rule else ""
    title = alert.runbook.strip().splitlines()[0]
    return (
        f"{HEAD}# {alert.name}\n\n{title}\n\nSeverity: {alert.severity}.{rule}\n\n{runbook_body(alert.runbook)}\n\n"
        f"## Rule\n\n```promql\n{lines(alert.expression(site))}\n```\n"
    )
