"""Which states of an incident are worth a message: its beginning, worse, better, and its end.

Alertmanager sends all alerts of a group at each change of any of them. Somebody on call wants to hear of an incident
when it begins, when an alert as severe as the worst one joins it, when the worst is over, and when all is over.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from ledgerops.notify.incident import Incident, rank

REMINDER_SECONDS = 3.5 * 3600.0  # after which the same state is sent again: below Alertmanager's repeat_interval (4 h)


@dataclass(frozen=True, slots=True)
class Told:
    """What the last message about a group said. `alerts` are those that fired, by fingerprint, with their severity."""

    began: float  # of the first alert of the incident, epoch seconds
    alerts: Mapping[str, str]
    at: float  # when it was accepted, by the clock of the queue

    def ended_before(self, incident: Incident) -> bool:
        """Whether another incident of the group has begun: this one was over, or none of its alerts is known any more,
        as where an Alertmanager lost its log and with it the end."""
        known = any(alert.fingerprint in self.alerts and alert.began <= self.at for alert in incident.alerts)
        return incident.status == "firing" and not (known or (incident.cut and self.alerts))


def began(incident: Incident, told: Told | None) -> float:
    """When the incident began, in epoch seconds: its first alert. A new one follows an end as soon as one fires."""
    if told is not None and not told.ended_before(incident):
        return told.began
    return min((alert.began for alert in incident.alerts if alert.status == "firing"), default=incident.began)


def next_told(incident: Incident, told: Told | None, now: float) -> Told | None:
    """What is known after a message about this state of the incident; None when it is not worth a message."""
    firing = {alert.fingerprint: alert.severity for alert in incident.alerts if alert.status == "firing"}
    if incident.cut and not firing:
        return None  # those left out may go on
    if told is None or not told.alerts or told.ended_before(incident):
        return Told(began(incident, told), firing, now)
    changed = not firing or _worse(firing, told) or (not incident.cut and _better(firing, told))
    if changed or now - told.at >= REMINDER_SECONDS:
        return Told(told.began, firing, now)
    return None


def _worse(firing: Mapping[str, str], told: Told) -> bool:
    """An alert began that is as severe as the worst that was told, or more."""
    worst = max(map(rank, told.alerts.values()))
    return any(rank(severity) >= worst for alert, severity in firing.items() if alert not in told.alerts)


def _better(firing: Mapping[str, str], told: Told) -> bool:
    """At least half of the alerts that were the worst are over. Of many that end one by one each halving is told."""
    worst = max(map(rank, told.alerts.values()))
    had = {alert for alert, severity in told.alerts.items() if rank(severity) == worst}
    return 2 * len(had & firing.keys()) <= len(had)
