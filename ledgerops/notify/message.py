"""The message: at most twelve lines for somebody on call.

Line 1: the symptom, or the exception that ended the query, its severity, and since when the alert lasts. Then the most
likely cause with its evidence, the first safe action, what was ruled out, and links. Texts come from labels and
exceptions: each is one line without control characters.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from ledgerops.common.format import clean, duration
from ledgerops.diagnosis.proof import MAX_TOLD, confidence
from ledgerops.diagnosis.report import figures_of
from ledgerops.model.finding import SEVERITIES
from ledgerops.model.spark_progress import parse_instant
from ledgerops.notify.incident import Incident, matchers
from ledgerops.notify.outcome import utc_clock

MAX_LINES = 12
MAX_LINE_CHARACTERS = 300  # chat clients fold longer lines, pagers cut them
MAX_WAIT_SECONDS = 900.0  # for which an alert may wait before it begins
# where a space ends what Discord, Mattermost and others would follow: @everyone, <@name>, [text](address)
ADDRESSING = re.compile(r"(?<=@)(?=(?:everyone|here|channel|all)\b)|(?<=<)(?=[@!#&])|(?<=\])(?=\()", re.IGNORECASE)
FAILED = "the query failed"  # how a finding begins that says the exception
ENDED = ("stopped", "failed", "lost")  # states of a query that did not recover
MAX_SUBJECTS = 8  # that are named of a group without a query: a zone may have hundreds of drivers


@dataclass(frozen=True, slots=True)
class Message:
    """What senders deliver. `title` is the first line, `body` all others."""

    title: str
    body: str
    severity: str
    resolved: bool

    @property
    def text(self) -> str:
        """Title and body as plain text, one below the other; the title alone when there is no body."""
        return f"{self.title}\n{self.body}" if self.body else self.title


def compose(
    incident: Incident,
    diagnosis: Mapping[str, Any] | None,
    now: float,
    trouble: str | None = None,
    before: Mapping[str, Any] | None = None,
    outcomes: Sequence[str] = (),
) -> Message:
    """The message. `diagnosis` is the query's part of the diagnosis document; where it is None, `trouble` says why.
    `before` is the diagnosis of when the incident began: the message says what changed since. `outcomes` are what
    became of those that the alerts are about, where there is no diagnosis."""
    over = incident.status == "resolved"
    lines = _resolved(incident, diagnosis, before, outcomes) if over else _firing(incident, diagnosis, now)
    if diagnosis is None and incident.worst.labels.get("query") and not any(outcomes):
        lines.insert(1, f"diagnosis: none ({trouble or 'no driver answered'})")
    lines += _links(incident)
    cut = [_one_line(line) for line in lines[:MAX_LINES]]
    return Message(cut[0], "\n".join(cut[1:]), incident.worst.severity, incident.status == "resolved")


def compose_checked(
    incident: Incident,
    diagnosis: Mapping[str, Any] | None,
    now: float,
    trouble: str | None = None,
    before: Mapping[str, Any] | None = None,
    outcomes: Sequence[str] = (),
) -> tuple[Message, Exception | None]:
    """The message, and the error if what a driver answered is no diagnosis: then the message is without it."""
    try:
        return compose(incident, diagnosis, now, trouble, before, outcomes), None
    except Exception as error:
        return compose(incident, None, now, "the driver returned an invalid diagnosis"), error


def _one_line(text: str) -> str:
    """Without line breaks and control characters: a text must not be able to add a line of its own, to call everybody
    of a channel, or to hide an address behind other words."""
    line = ADDRESSING.sub(" ", clean(" ".join(text.split())))
    return line if len(line) <= MAX_LINE_CHARACTERS else line[: MAX_LINE_CHARACTERS - 1] + "…"


def _firing(incident: Incident, diagnosis: Mapping[str, Any] | None, now: float) -> list[str]:
    worst = incident.worst
    about = _heading(worst.severity.upper(), incident)
    since = f"alert since {utc_clock(worst.began)}, for {duration(max(0.0, now - worst.began))}"
    causes = (diagnosis or {}).get("root_causes") or []
    failed = next((each["summary"] for each in causes[:1] if each["summary"].startswith(FAILED)), None)
    lines = [f"{about}: {failed or worst.summary.rstrip('.')} ({since})"]
    if worst.description and failed is None:
        lines.append(worst.description.removeprefix(f"{incident.query} "))
    if diagnosis is not None:
        lines += [line.removesuffix(f": {failed}") for line in _causes(diagnosis, worst.began)]
    lines += _same(incident)
    others = [alert.name for alert in incident.alerts[1:] if alert.status == "firing" and alert.name != worst.name]
    if others:
        lines.append(
            f"also firing: {', '.join(dict.fromkeys(others))}" + (f" and {incident.cut} more" if incident.cut else "")
        )
    return lines


def _same(incident: Incident) -> list[str]:
    """The other drivers that have the worst alert, in a group of alerts without a query."""
    worst = incident.worst
    if incident.query:
        return []
    firing = [each for each in incident.alerts if each.status == "firing"]
    also = [each for each in firing[1:] if each.name == worst.name]
    count = len(also) + (incident.cut if len(also) == len(firing) - 1 else 0)
    if count == 0:
        return []
    named = list(dict.fromkeys(each.subject for each in also if each.subject))[:MAX_SUBJECTS]
    more = ", ..." if len(named) < count else ""
    return [f"{worst.subject or 'this one'} and {count} more: {', '.join(named)}{more}"]


def _heading(state: str, incident: Incident) -> str:
    """The state, and whom it is about: the query and its application, else the application, else the scrape job."""
    about = incident.query or incident.app or incident.job
    if incident.query and incident.app:
        about += f" of {incident.app}"
    return f"{state} {about}".rstrip()


def _causes(diagnosis: Mapping[str, Any], began: float) -> list[str]:
    """The root causes of now; else the worst of those that were over shortly before the alert began, or since."""
    causes = diagnosis.get("root_causes") or []
    now = f"status {diagnosis.get('status')}, health {diagnosis.get('health')}"
    lines = [f"cause: {_cause(cause)}" for cause in causes[:2]]
    if not causes:
        over = _over(diagnosis, began)
        if over is None:
            return [f"cause: none found at this moment; {now}"]
        causes = [over]
        lines = [f"cause until {over['until'][11:19]} UTC: {_cause(over)}", f"now: nothing found; {now}"]
    remedies = sorted(causes[0].get("remedies", []), key=lambda each: not each.get("safe"))
    for remedy in remedies[:1]:
        command = f": {remedy['command']}" if remedy.get("command") else ""
        ask = "" if remedy.get("safe") else " (ask the owner before: this changes the job)"
        lines.append(f"do first{ask}: {remedy['action']}{command} ({remedy['why']})")
    ruled_out = [each["rule"] for each in causes[0].get("ruled_out", [])[:MAX_TOLD]]
    if ruled_out:
        lines.append(f"ruled out: {', '.join(ruled_out)}")
    return lines


def _cause(cause: Mapping[str, Any]) -> str:
    return f"{cause['rule']} (confidence {confidence(cause['confidence'])}): {cause['summary']}"


def _over(diagnosis: Mapping[str, Any], began: float) -> Mapping[str, Any] | None:
    """The worst root cause that ended after the trouble of an alert can have begun; of equal ones the newest."""
    ended = [
        each
        for each in diagnosis.get("ended_lately", ())
        if (until := parse_instant(each["until"])) is not None and until >= began - MAX_WAIT_SECONDS
    ]
    return max(ended, key=lambda each: (SEVERITIES.index(each["severity"]), each["until"]), default=None)


def _resolved(
    incident: Incident,
    diagnosis: Mapping[str, Any] | None,
    before: Mapping[str, Any] | None,
    outcomes: Sequence[str] = (),
) -> list[str]:
    """What is known: recovered, with the figures; stopped; lost and not seen again; or replaced."""
    worst = incident.worst
    lasted = f"the alert lasted {duration(max(0.0, (worst.ended or worst.began) - worst.began))}"
    became = _state(diagnosis) if diagnosis is not None else next(iter(outcomes), "")
    told = "; ".join(part for part in (became, lasted) if part)
    lines = [f"{_heading('RESOLVED', incident)}: {worst.summary.rstrip('.')} ({told})"]
    if diagnosis is not None:
        figures = figures_of(diagnosis) if "forecast" in diagnosis else ""
        lines.append(
            f"now: {diagnosis.get('status')}, health {diagnosis.get('health')}" + (f"; {figures}" if figures else "")
        )
    lines += [
        f"{alert.subject}: {each}"
        for alert, each in zip(incident.alerts[1:], outcomes[1:], strict=False)
        if each and alert.subject != worst.subject
    ]
    was = [cause["rule"] for cause in (before or {}).get("root_causes", [])]
    now = {cause["rule"] for cause in (diagnosis or {}).get("root_causes", [])}
    if was and diagnosis is not None:
        gone = [rule for rule in was if rule not in now]
        stays = [rule for rule in was if rule in now]
        if gone:
            lines.append(f"gone: {', '.join(gone)}")
        if stays:
            lines.append(f"still active: {', '.join(stays)}")
    return lines


def _state(diagnosis: Mapping[str, Any]) -> str:
    """Recovered, if the driver says so: an alert also ends with its query, or for want of data."""
    status, causes = diagnosis.get("status"), diagnosis.get("root_causes") or []
    if status in ENDED:
        return str(status)
    bad = [cause["rule"] for cause in causes if cause.get("severity") != "info"]
    return f"{bad[0]} is still active" if bad else "catching up" if status == "catching_up" else "recovered"


def _links(incident: Incident) -> list[str]:
    worst = incident.worst
    links = [("runbook", worst.runbook), ("dashboard", worst.dashboard), ("silence", _silence(incident))]
    return [f"{name}: {url}" for name, url in links if url]


def _silence(incident: Incident) -> str | None:
    if incident.alertmanager is None or incident.status == "resolved":
        return None
    shared = matchers(query=incident.query, app=incident.app)
    if not incident.query:  # a driver: only what this page is about
        instances = {alert.labels.get("instance") for alert in incident.alerts}
        instance = instances.pop() if len(instances) == 1 else None
        shared = matchers(alertname=incident.worst.name, job=incident.job, app=incident.app, instance=instance)
    matcher = f"{{{shared}}}"
    return f"{incident.alertmanager}/#/silences/new?filter={quote(matcher, safe='')}"
