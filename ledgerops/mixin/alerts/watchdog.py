"""Watchdog: this alert always fires, to show that alerts arrive.

Meaning: rules are evaluated, Alertmanager routes alerts, and the receiver answers. Nothing is wrong.
Impact: none while it fires. When it stops, no alert arrives anywhere.
Diagnosis: 1. If it has stopped, query `ALERTS{alertname="LedgerWatchdog"}` in Prometheus: no result means that no
    rules are loaded.
    2. Check the Status page of Alertmanager.
    3. `ledgerops render --out FOLDER --check` names rule files that were changed by hand.
Mitigation: route it to a service that raises an alarm when the alert stops arriving (a dead man's switch). Never
    silence it.
"""

from ledgerops.mixin.alerts.model import Alert, Case

ALERT = Alert(
    name="LedgerWatchdog", severity="info",
    expression=lambda site: f'label_replace(vector(1), "job", "{site.job}", "", "")', hold=0.0, keep=0.0,
    summary="Alerts are being evaluated and delivered.",
    description="This alert always fires; {{ $labels.job }} is being watched.", runbook=__doc__, page="ledgerops-fleet",
    of_query=False, without=("stays quiet", "resolves", "query restarts"),
    cases=(
        Case("fires", "always", {"up": "1x20"}, 60, True),
        Case("series vanishes", "with nothing to scrape, too", {"up": "1x2 stale"}, 240, True),
    ),
)  # fmt: skip
