"""alerts/rules: Prometheus' recording and alerting rules, made of the catalogue of alerts, a file a group."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ledgerops.mixin.alerts import CAUSES, FRESHNESS, OBSERVER, SYMPTOMS
from ledgerops.mixin.alerts.freshness import records
from ledgerops.mixin.alerts.model import Alert
from ledgerops.mixin.alerts.promql import CAUSE, cause, lines
from ledgerops.mixin.site import Site, duration
from ledgerops.mixin.yaml_text import document

MOST = 20  # rules a group
FILES: Mapping[str, tuple[Alert, ...]] = {
    "symptoms": SYMPTOMS,
    "freshness": FRESHNESS,
    "observer": OBSERVER,
    "causes": CAUSES,
}


def groups(name: str, site: Site) -> list[dict[str, Any]]:
    """The groups of one file; a PrometheusRule has those of all."""
    interval = duration(site.evaluation_seconds)
    made = [_rule(alert, site) for alert in FILES[name]]
    if name == "freshness":
        made = [{"record": record, "expr": lines(expression)} for record, expression in records(site)] + made
    return [
        {
            "name": f"ledgerops-{name}" + (f"-{n // MOST + 1}" if n else ""),
            "interval": interval,
            "rules": made[n : n + MOST],
        }
        for n in range(0, len(made), MOST)
    ]


def _rule(alert: Alert, site: Site) -> dict[str, Any]:
    rule: dict[str, Any] = {"alert": alert.name, "expr": lines(alert.expression(site))}
    if alert.hold:
        rule["for"] = site.window(alert.hold)
    if alert.keep:
        rule["keep_firing_for"] = site.window(alert.keep)
    rule["labels"] = {"severity": alert.severity}
    rule["annotations"] = texts(alert, site)
    return rule


def texts(alert: Alert, site: Site) -> Mapping[str, str]:
    """Every link is an annotation of its own, so that chat and alert pages make links of them."""
    app = "{{ with $labels.app }}&var-app={{ . }}{{ end }}"  # a driver of before the label has none
    query = f"{app}&var-query={{{{ $labels.query }}}}" if alert.of_query else ""
    return {
        "summary": alert.summary,
        "description": alert.description.replace(CAUSE, cause(site)),
        "runbook_url": f"{site.runbooks}/{alert.name}.md",
        "dashboard_url": f"{site.grafana}/d/{alert.page}?var-job={{{{ $labels.job }}}}{query}&from=now-1h&to=now",
    }


def rule_files(site: Site) -> Mapping[str, str]:
    """`<group>.yaml` -> text."""
    return {f"{name}.yaml": document({"groups": groups(name, site)}) for name in FILES}
