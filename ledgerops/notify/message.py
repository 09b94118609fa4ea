"""The message: at most twelve lines for somebody on call.

Line 1: the symptom, or the exception that ended the query, its severity, and since when the alert lasts. Then the most
likely cause with its evidence, the first step, what was ruled out, and links. Texts come from labels and
exceptions: each is one line without control characters.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any
from urllib.parse import quote

from ledgerops.common.format import clean, duration
from ledgerops.diagnosis.proof import MAX_TOLD, confidence, cure
from ledgerops.diagnosis.report import figures_of
from ledgerops.model.spark_progress import parse_instant
from ledgerops.notify.incident import Firing, Incident, matchers, rank
from ledgerops.notify.outcome import utc_clock

MAX_LINES = 12
MAX_LINE_CHARACTERS = 300  # chat clients fold longer lines, pagers cut them
MAX_WAIT_SECONDS = 900.0  # for which an alert may wait before it begins
# where a space ends what Discord, Mattermost and others would follow: @everyone, <@name>, [text](address)
ADDRESSING = re.compile(r"(?<=@)(?=(?:everyone|here|channel|all)\b)|(?<=<)(?=[@!#&])|(?<=\])(?=\()", re.IGNORECASE)
FAILED = "the query failed"  # how a finding begins that says the exception
ENDED = ("stopped", "failed", "lost")  # states of a query that did not recover
MAX_SUBJECTS = 8  # queries or drivers that are named, and asked: a zone may have hundreds
MAX_CAUSES = 3  # of several queries
Diagnoses = Mapping[str, Mapping[str, Any]]  # the queries' parts of the diagnosis document, by `Firing.about`


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
    diagnoses: Diagnoses,
    now: float,
    trouble: str | None = None,
    before: Diagnoses = MappingProxyType({}),
    outcomes: Mapping[str, str] = MappingProxyType({}),
) -> Message:
    """The message. `trouble` says why the first query has no diagnosis. `before` are those of when the incident began:
    the message says what changed since. `outcomes` are what became of those without a diagnosis."""
    over = incident.status == "resolved"
    lines = _resolved(incident, diagnoses, before, outcomes) if over else _firing(incident, diagnoses, now)
    if not diagnoses and incident.of_queries and not outcomes:
        lines.insert(1, f"diagnosis: none ({trouble or 'no driver answered'})")
    links = _links(incident)
    title, *body = (_one_line(line) for line in lines[: MAX_LINES - len(links)])
    body += map(_harmless, links)  # whole: the end of an address that is cut is lost
    return Message(title, "\n".join(body), incident.worst.severity, over)


def compose_checked(
    incident: Incident, diagnoses: Diagnoses, now: float, *more: Any
) -> tuple[Message, Exception | None]:
    """What `compose` makes of the same, and the error if what a driver answered is no diagnosis: then the message is
    without it."""
    try:
        return compose(incident, diagnoses, now, *more), None
    except Exception as error:
        return compose(incident, {}, now, "the driver returned an invalid diagnosis"), error


def _harmless(text: str) -> str:
    """Without line breaks and control characters: a text must not be able to add a line of its own, to call everybody
    of a channel, or to hide an address behind other words."""
    return ADDRESSING.sub(" ", clean(" ".join(text.split())))


def _one_line(text: str) -> str:
    line = _harmless(text)
    return line if len(line) <= MAX_LINE_CHARACTERS else line[: MAX_LINE_CHARACTERS - 1] + "…"


def _firing(incident: Incident, diagnoses: Diagnoses, now: float) -> list[str]:
    worst, queries = incident.worst, incident.of_queries
    first = diagnoses.get(worst.about, {})
    failed = next(
        (each["summary"] for each in first.get("root_causes", ())[:1] if each["summary"].startswith(FAILED)), None
    )
    since = f"alert since {utc_clock(worst.began)}, for {duration(max(0.0, now - worst.began))}"
    ended = _ended(incident)
    better = bool(ended) and rank(ended[0].severity) > rank(worst.severity)
    state = _heading(worst.severity.upper(), incident) + (", better" if better else "")
    lines = [f"{state}: {failed or worst.summary.rstrip('.')} ({since})"]
    if ended:
        lines += [_over(ended), *_states(queries, diagnoses, {})]
    elif len(queries) > 1:
        lines.append(f"queries: {_listed([each.query if incident.app else each.about for each in queries])}")
    if worst.description and failed is None:
        lines.append(worst.description.removeprefix(f"{incident.query} "))
    causes = [line.removesuffix(f": {failed}") for line in _causes(queries, diagnoses)]
    lines += causes
    if worst.first_step and not any(line.startswith("do first") for line in causes):
        lines.append(f"do first: {worst.first_step[:1].lower()}{worst.first_step[1:].removesuffix('.')}")
    lines += _same(incident)
    others = [alert.name for alert in incident.alerts[1:] if alert.status == "firing" and alert.name != worst.name]
    if others:
        lines.append(f"also firing: {', '.join(dict.fromkeys(others))}")
    if incident.cut:
        lines.append(f"{incident.cut} more alerts are not shown")
    return lines


def _ended(incident: Incident) -> Sequence[Firing]:
    """The worst alert that has just ended, of each query or driver that had it, while others go on; none where all that
    go on are worse, or where the one that goes on is the same."""
    goes_on = incident.worst
    over = [
        each
        for each in incident.alerts
        if each.status == "resolved" and each.name != goes_on.name and rank(each.severity) >= rank(goes_on.severity)
    ]
    return [each for each in over if each.name == over[0].name]


def _over(ended: Sequence[Firing]) -> str:
    last = max(each.ended or each.began for each in ended)
    lasted = duration(max(0.0, last - min(each.began for each in ended)))
    about = _listed([each.subject for each in ended])
    return f"over since {utc_clock(last)}: {ended[0].summary.rstrip('.')} ({about}; that alert lasted {lasted})"


def _listed(names: Sequence[str]) -> str:
    """The first of some names, and how many are not named."""
    given = list(dict.fromkeys(each for each in names if each))
    more = max(0, len(given) - MAX_SUBJECTS)
    return ", ".join(given[:MAX_SUBJECTS]) + (f" and {more} more" if more else "")


def _same(incident: Incident) -> list[str]:
    """The other drivers that have the worst alert, in a group of alerts without a query."""
    worst = incident.worst
    if worst.query:
        return []
    also = [each for each in incident.alerts[1:] if each.status == "firing" and each.name == worst.name]
    named = list(dict.fromkeys(each.subject for each in also if each.subject))[:MAX_SUBJECTS]
    more = ", ..." if len(named) < len(also) else ""
    return [f"{worst.subject or 'this one'} and {len(also)} more: {', '.join(named)}{more}"] if also else []


def _heading(state: str, incident: Incident) -> str:
    """The state, and whom it is about: the query or the number of queries with the application, else the application,
    else the scrape job."""
    count = len(incident.of_queries)
    named = f"{count} queries" if count > 1 and incident.worst.query else incident.query or incident.worst.query
    about = named or incident.app or incident.job
    if named and incident.app:
        about += f" of {incident.app}"
    return f"{state} {about}".rstrip()


def _causes(queries: Sequence[Firing], diagnoses: Diagnoses) -> list[str]:
    """The root causes, each once with the queries that have it, and the first step of the first. Of a query they are
    those of now; else, or where it was more severe, what was over shortly before its alert began, or since."""
    told: dict[str, tuple[str, Mapping[str, Any], list[str]]] = {}
    quiet: list[str] = []  # what is said of those that have no cause now
    for alert in queries:
        diagnosis = diagnoses.get(alert.about)
        if diagnosis is None:
            continue
        causes = list(diagnosis.get("root_causes") or [])[:2]
        if not causes:
            quiet.append(f"status {diagnosis.get('status')}, health {diagnosis.get('health')}")
        over = worst_over(diagnosis, alert)
        if over is not None and (not causes or _severity(over) > max(map(_severity, causes))):
            causes = [over, *causes][:2]
        for cause in causes:
            until = f" until {cause['until'][11:19]} UTC" if cause.get("until") else ""
            told.setdefault(cause["rule"], (until, cause, []))[2].append(alert.query)
    several = len(queries) > 1
    lines = []
    for until, cause, names in list(told.values())[:MAX_CAUSES]:
        of = f" of {_listed(names)}" if several else ""
        lines.append(f"cause{of}{until}: {_cause(cause)}")
    if quiet and not told:
        lines.append(f"cause: none found at this moment; {quiet[0]}")
    elif quiet and not several:
        lines.append(f"now: nothing found; {quiet[0]}")
    for _, cause, _ in list(told.values())[:1]:
        lines += _first_step(cause)
    return lines


def _first_step(cause: Mapping[str, Any]) -> list[str]:
    lines = []
    remedies = sorted(cause.get("remedies", []), key=lambda each: not each.get("safe"))
    for remedy in remedies[:1]:
        command = f": {remedy['command']}" if remedy.get("command") else ""
        lines.append(f"do first{_ask(remedy)}: {remedy['action']}{command} ({remedy['why']})")
    if (then := cure(remedies)) is not None:
        lines.append(f"then{_ask(then)}: {then['action']}")
    ruled_out = [each["rule"] for each in cause.get("ruled_out", [])[:MAX_TOLD]]
    if ruled_out:
        lines.append(f"ruled out: {', '.join(ruled_out)}")
    return lines


def _ask(remedy: Mapping[str, Any]) -> str:
    return "" if remedy.get("safe") else " (ask the owner before: this changes the job)"


def _cause(cause: Mapping[str, Any]) -> str:
    return f"{cause['rule']} (confidence {confidence(cause['confidence'])}): {cause['summary']}"


def _severity(cause: Mapping[str, Any]) -> int:
    return rank(cause["severity"])


def worst_over(diagnosis: Mapping[str, Any], alert: Firing) -> Mapping[str, Any] | None:
    """The worst root cause that ended after the trouble of an alert can have begun, and began before its end; of equal
    ones the newest. An alert that sees what a rule sees has only what explains that rule, or the rule itself."""
    found = [
        each
        for each in diagnosis.get("ended_lately", ())
        if (until := parse_instant(each["until"])) is not None
        and until >= alert.began - MAX_WAIT_SECONDS
        and (alert.ended is None or (parse_instant(each["since"]) or alert.began) <= alert.ended)
        and (not alert.rule or alert.rule in (each["rule"], *each["explains"]))
    ]
    return max(found, key=lambda each: (_severity(each), each["until"]), default=None)


def _resolved(
    incident: Incident,
    diagnoses: Diagnoses,
    before: Diagnoses,
    outcomes: Mapping[str, str],
) -> list[str]:
    """What is known: recovered, with the figures; stopped; lost and not seen again; or replaced."""
    worst = incident.worst
    of = f" of {worst.query}" if len(incident.of_queries) > 1 else ""
    lasted = f"the alert{of} lasted {duration(max(0.0, (worst.ended or worst.began) - worst.began))}"
    diagnosis = diagnoses.get(worst.about)
    became = _state(diagnosis) if diagnosis is not None else outcomes.get(worst.about, "")
    told = "; ".join(part for part in (became, lasted) if part)
    lines = [f"{_heading('RESOLVED', incident)}: {worst.summary.rstrip('.')} ({told})"]
    if diagnosis is not None and len(incident.of_queries) == 1:
        figures = figures_of(diagnosis) if "forecast" in diagnosis else ""
        lines.append(
            f"now: {diagnosis.get('status')}, health {diagnosis.get('health')}" + (f"; {figures}" if figures else "")
        )
    others = {each.about: each for each in incident.alerts}
    if len(others) > 1:
        lines += _states(tuple(others.values()), diagnoses, outcomes)
    was = [cause["rule"] for cause in before.get(worst.about, {}).get("root_causes", [])]
    now = {cause["rule"] for cause in (diagnosis or {}).get("root_causes", [])}
    if was and diagnosis is not None:
        gone = [rule for rule in was if rule not in now]
        stays = [rule for rule in was if rule in now]
        if gone:
            lines.append(f"gone: {', '.join(gone)}")
        if stays:
            lines.append(f"still active: {', '.join(stays)}")
    elif diagnosis is not None and (over := worst_over(diagnosis, worst)) is not None:
        lines.append(f"it was until {over['until'][11:19]} UTC: {_cause(over)}")
    return lines


def _states(alerts: Sequence[Firing], diagnoses: Diagnoses, outcomes: Mapping[str, str]) -> list[str]:
    """What is known now of several queries and drivers, those with the same together."""
    names: dict[str, list[str]] = {}
    for alert in alerts:
        diagnosis = diagnoses.get(alert.about)
        state = outcomes.get(alert.about, "") if diagnosis is None else _state(diagnosis)
        drain = (diagnosis or {}).get("forecast", {}).get("drain_seconds")
        if state == "catching up" and drain:
            state += f", backlog clears in {duration(drain)}"
        names.setdefault(state, []).append(alert.query or alert.about)
    return [f"now {state}: {_listed(given)}" for state, given in names.items() if state]


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
    shared = matchers(job=incident.job, app=incident.app, query=incident.query)
    if not incident.query:  # a driver: only what this page is about
        instances = {alert.labels.get("instance") for alert in incident.alerts}
        instance = instances.pop() if len(instances) == 1 else None
        shared = matchers(alertname=incident.worst.name, job=incident.job, app=incident.app, instance=instance)
    matcher = f"{{{shared}}}"
    return f"{incident.alertmanager}/#/silences/new?filter={quote(matcher, safe='')}"
