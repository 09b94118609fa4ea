"""A webhook as Alertmanager 0.25 sends it, of which only what a case is about is given."""

from typing import Any

STARTED = "2026-03-01T10:00:00.123456789Z"
NEVER = "0001-01-01T00:00:00Z"


def alert(
    name: str = "LedgerFallingBehind", severity: str = "critical", query: str = "daily_counts", **other: Any
) -> Any:
    return {
        "status": "firing",
        "labels": {"alertname": name, "severity": severity, "job": "ledgerops", "query": query},
        "annotations": {
            "summary": "A query falls behind its input.",
            "description": f"{query} reads rows that are 3m old.",
            "root_cause": "Key skew. Do first: Split the key. (key-skew)",  # the diagnosis says it in more detail
            "runbook_url": f"https://example.com/runbooks/{name}.md",
            "dashboard_url": "https://example.com/d/ledgerops-query",
        },
        "startsAt": STARTED,
        "endsAt": NEVER,
        "generatorURL": "",
        "fingerprint": f"{name} {query}",
        **other,
    }


def webhook(*alerts: Any, **other: Any) -> dict[str, Any]:
    given = alerts or (alert(),)
    labels = {"job": "ledgerops", "query": given[0]["labels"].get("query", "")}
    return {
        "version": "4",
        "groupKey": '{}:{job="ledgerops", query="daily_counts"}',
        "status": "firing",
        "receiver": "notify",
        "groupLabels": labels,
        "commonLabels": labels,
        "commonAnnotations": {},
        "externalURL": "http://alertmanager:9093",
        "alerts": list(given),
        **other,
    }


OVER = {"status": "resolved", "endsAt": "2026-03-01T10:07:00Z"}


def resolved(**other: Any) -> dict[str, Any]:
    return webhook(alert(**{**OVER, **other}), status="resolved")


def instances(*addresses: Any) -> dict[str, Any]:
    """What Prometheus answers that knows a query on these instances."""
    return {"data": {"result": [{"metric": {"instance": each}} for each in addresses]}}


CAUSE = {
    "rule": "key-skew", "severity": "warning", "since": "2026-03-01T09:59:00Z", "confidence": 0.93,
    "component": {"kind": "stage", "name": "12", "detail": "customer_id"},
    "summary": "key 789087abc47c of customer_id has 80% of the rows", "evidence": [],
    "remedies": [
        {"action": "drop the state", "why": "quick", "command": None, "safe": False},
        {"action": "salt the key", "why": "only splitting the key spreads its rows", "command": None, "safe": True},
    ],
    "explains": ["falling-behind"], "ruled_out": [{"rule": "slow-sink", "because": "the sink takes 3% of the batch"}],
}  # fmt: skip
DIAGNOSIS = {
    "query": "daily_counts", "status": "falling_behind", "health": 41, "root_causes": [CAUSE], "findings": [CAUSE],
}  # fmt: skip
KNOWN = {"version": 1, "queries": [DIAGNOSIS]}  # what its driver answers
HEALTHY = {"query": "daily_counts", "status": "healthy", "health": 100, "root_causes": [], "findings": []}
