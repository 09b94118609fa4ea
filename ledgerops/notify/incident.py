"""Alertmanager's webhook (version 4) as plain data: one incident is one group of alerts about one application."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from ledgerops.errors import UserError
from ledgerops.model.finding import SEVERITIES
from ledgerops.model.spark_progress import parse_instant

YEAR_10000 = 253_402_300_800.0  # epoch seconds: what is later has no date


@dataclass(frozen=True, slots=True)
class Firing:
    """One alert of a group."""

    name: str
    status: Literal["firing", "resolved"]
    severity: str
    summary: str
    description: str
    began: float  # seconds since the epoch
    ended: float | None
    fingerprint: str
    runbook: str | None
    dashboard: str | None
    first_step: str = ""  # what to do where no cause is known
    rule: str = ""  # of the diagnosis, that sees the same
    labels: Mapping[str, str] = field(default_factory=dict)

    @property
    def app(self) -> str:
        """The application that it is about; empty where the alert has none."""
        return self.labels.get("app", "")

    @property
    def subject(self) -> str:
        """The query, application or driver that it is about; empty without one."""
        return next((self.labels[each] for each in ("query", "app", "instance") if self.labels.get(each)), "")

    @property
    def query(self) -> str:
        """The query that it is about; empty where it is about none."""
        return self.labels.get("query", "")

    @property
    def about(self) -> str:
        """The query with its application, else the driver; no two of a group are equal."""
        if self.query:
            return f"{self.query} of {self.app}" if self.app else self.query
        return self.labels.get("instance") or self.app


@dataclass(frozen=True, slots=True)
class Incident:
    """One notification: the group's alerts, worst first."""

    group: str  # Alertmanager's key of the group
    status: Literal["firing", "resolved"]
    job: str
    query: str | None
    alerts: tuple[Firing, ...]
    alertmanager: str | None
    cut: int = 0  # alerts that Alertmanager left out, of which nothing is known
    app: str = ""

    @property
    def worst(self) -> Firing:
        """The most severe alert, of those that are firing if any is. Raises IndexError without alerts."""
        return self.alerts[0]

    @property
    def began(self) -> float:
        """When the first of the alerts began, in epoch seconds. Raises ValueError without alerts."""
        return min(alert.began for alert in self.alerts)

    @property
    def of_queries(self) -> tuple[Firing, ...]:
        """The worst alert of each query, worst first: of those that fire, or of all once the incident is over."""
        found: dict[tuple[str, str], Firing] = {}
        for alert in self.alerts:
            if alert.query and alert.status == self.status:
                found.setdefault((alert.app, alert.query), alert)
        return tuple(found.values())

    @property
    def identity(self) -> str:
        """The same for the same alerts in the same state: a repeated delivery is not a new page."""
        parts = [self.group, self.status, *sorted(f"{a.fingerprint} {a.status} {a.began}" for a in self.alerts)]
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def without_ended(payload: Mapping[str, Any], began: float) -> Mapping[str, Any]:
    """A webhook that `parse_webhook` takes, without the alerts that ended before `began`.

    Prometheus repeats the end of an alert for a quarter of an hour, and Alertmanager puts it into what its group is
    about by then.
    """
    ended = [_ended(each) for each in payload["alerts"]]
    kept = [each for each, at in zip(payload["alerts"], ended, strict=True) if at is None or at >= began]
    return {**payload, "alerts": kept} if kept else payload


def rank(severity: str) -> int:
    """How severe, from 0 on; a severity of another origin counts as a warning."""
    return SEVERITIES.index(severity) if severity in SEVERITIES else 1


def matchers(**labels: str | None) -> str:
    """Label matchers in PromQL's form, without braces: of each label that has a value."""
    return ", ".join(f"{label}={promql_text(value)}" for label, value in labels.items() if value)


def promql_text(value: str) -> str:
    """A string literal of PromQL."""
    escaped = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def parse_webhook(payload: object) -> Incident:
    """The incident in a webhook's JSON. Raises UserError that says what is missing or of the wrong kind."""
    if not isinstance(payload, Mapping):
        raise UserError("not a webhook of Alertmanager: expected a JSON object")
    version = payload.get("version")
    if version != "4":
        raise UserError(f"unsupported version of Alertmanager's webhook: {version!r}, expected '4'")
    given = payload.get("alerts")
    if not isinstance(given, Sequence) or isinstance(given, str) or not given:
        raise UserError("webhook without alerts")
    alerts = [_firing(each) for each in given]
    firing = [alert for alert in alerts if alert.status == "firing"]
    common = {**_texts(payload, "commonLabels"), **_texts(payload, "groupLabels")}
    return Incident(
        group=str(payload.get("groupKey", "")),
        status="firing" if firing else "resolved",
        job=common.get("job", ""),
        query=common.get("query"),
        alerts=tuple(sorted(alerts, key=lambda a: (a.status != "firing", -rank(a.severity), a.began, a.name))),
        cut=max(0, int(payload.get("truncatedAlerts") or 0)),
        alertmanager=str(payload["externalURL"]) if payload.get("externalURL") else None,
        app=common.get("app", ""),
    )


def _firing(given: object) -> Firing:
    if not isinstance(given, Mapping):
        raise UserError("webhook with an alert that is not an object")
    labels, annotations = _texts(given, "labels"), _texts(given, "annotations")
    if "alertname" not in labels:
        raise UserError("webhook with an alert without the label alertname")
    status = given.get("status")
    if status not in ("firing", "resolved"):
        raise UserError(f"webhook with an alert of status {status!r}, expected firing or resolved")
    began = _instant(given.get("startsAt"))
    if began is None:
        raise UserError(f"webhook with an invalid startsAt: {given.get('startsAt')!r}")
    return Firing(
        name=labels["alertname"],
        status="firing" if status == "firing" else "resolved",
        severity=labels.get("severity", "warning"),
        summary=annotations.get("summary", labels["alertname"]),
        description=annotations.get("description", ""),
        began=began,
        ended=_ended(given),
        fingerprint=str(given.get("fingerprint") or sorted(labels.items())),
        runbook=_web(annotations.get("runbook_url")),
        dashboard=_web(annotations.get("dashboard_url")),
        first_step=annotations.get("first_step", ""),
        rule=annotations.get("rule", ""),
        labels=labels,
    )


def _ended(given: Mapping[str, Any]) -> float | None:
    return _instant(given.get("endsAt")) if given.get("status") == "resolved" else None


def _web(url: str | None) -> str | None:
    """An address that somebody may click on; None for `javascript:`, `file:` and others."""
    return url if url and url.lower().startswith(("http://", "https://")) else None


def _texts(given: Mapping[str, Any], key: str) -> dict[str, str]:
    found = given.get(key)
    return {str(k): str(v) for k, v in found.items()} if isinstance(found, Mapping) else {}


def _instant(text: object) -> float | None:
    """Epoch seconds; Alertmanager writes the year 1 for never."""
    found = parse_instant(text)
    return found if found is not None and 0 < found < YEAR_10000 else None
