"""alerts/alertmanager.yml: who is notified of what, and which alert adds nothing to another.

One incident is one notification: alerts are grouped by application, whose queries share a driver, its host, a cluster
and mostly a broker; and an alert whose cause is alerting too is inhibited. `ledgerops notify` tells of a group when it
begins, gets worse, gets better, and is over.
The edges are those of the cause graph (`explains` of the rules) and of the alerts themselves. Only an alert of at least
the same severity may silence another: a ticket never swallows a page.
"""

from collections.abc import Mapping
from typing import Any

from ledgerops.diagnosis.rules import BY_SLUG
from ledgerops.mixin.access import notify_config
from ledgerops.mixin.alerts import ALERTS
from ledgerops.mixin.alerts.model import Alert
from ledgerops.mixin.site import Site
from ledgerops.mixin.yaml_text import document
from ledgerops.model.finding import SEVERITIES

ABOUT_NOTIFY = 'alertname=~"LedgerNotify.+"'
MAX_ALERTS = 1000  # of a group that are sent, 2.4 MB; notify tells no end of a group that is larger
# alerts that have no query: what silences what, for equal labels
WITHOUT_QUERY = (
    ("LedgerExporterAbsent", ("LedgerTargetDown",), ["job"]),
    ("LedgerDriverLost", ("LedgerExporterAbsent",), ["job"]),
    ("LedgerDriverLost", ("LedgerTargetDown",), ["job", "instance"]),
    ("LedgerNotifyLate", ("LedgerNotifySenderFailing",), ["job", "instance", "sender"]),
)


def inhibitions() -> Mapping[str, tuple[str, ...]]:
    """Alert -> alerts that it silences for the same query, sorted."""
    by_rule = {alert.rule: alert for alert in ALERTS if alert.rule}
    by_name = {alert.name: alert for alert in ALERTS}
    silenced: dict[str, tuple[str, ...]] = {}
    for alert in ALERTS:
        explained = BY_SLUG[alert.rule].explains if alert.rule in BY_SLUG else ()
        targets = [by_rule[slug] for slug in explained if slug in by_rule] + [by_name[name] for name in alert.inhibits]
        names = {target.name for target in targets if _rank(target) <= _rank(alert)}
        if names:
            silenced[alert.name] = tuple(sorted(names))
    return silenced


def _rank(alert: Alert) -> int:
    return SEVERITIES.index(alert.severity)


def alertmanager(site: Site) -> dict[str, Any]:
    """The content of Alertmanager's configuration file."""
    silenced = [(source, targets, ["job", "app", "query"]) for source, targets in inhibitions().items()]
    rules = [
        {
            "source_matchers": [f'alertname="{source}"'],
            "target_matchers": [f'alertname=~"{"|".join(targets)}"'],
            "equal": equal,
        }
        for source, targets, equal in (*silenced, *WITHOUT_QUERY)
    ]
    webhook = {"url": site.notify_url, "send_resolved": True, "max_alerts": MAX_ALERTS}
    if access := notify_config(site):
        webhook["http_config"] = access
    return {
        "route": {
            "receiver": "notify",
            "group_by": ["job", "app"],
            "group_wait": site.window(15.0),
            "group_interval": site.window(60.0),
            "repeat_interval": "4h",
            "routes": [
                # for a service that raises the alarm when it receives nothing: give `watchdog` its address
                {"receiver": "watchdog", "matchers": ['alertname="LedgerWatchdog"'], "repeat_interval": "1m"},
                # notify cannot report that it is down: give `direct` an address that does not need notify
                {"receiver": "direct", "matchers": [ABOUT_NOTIFY], "continue": True},
                {"receiver": "notify", "matchers": [ABOUT_NOTIFY]},
                # a cause is part of the page of its symptom; Alertmanager and Grafana list it
                {"receiver": "listed", "matchers": ['severity="info"']},
            ],
        },
        "inhibit_rules": rules,
        "receivers": [
            {"name": "notify", "webhook_configs": [webhook]},
            {"name": "watchdog"},
            {"name": "direct"},
            {"name": "listed"},
        ],
    }


def alertmanager_file(site: Site) -> str:
    """The text of alerts/alertmanager.yml for a site."""
    return document(alertmanager(site))
