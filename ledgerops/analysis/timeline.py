"""The timeline of incidents: what began when, what explained it, what ended; as events and as JSON.

An incident is a time with findings at warning or above; findings less than MAX_GAP_SECONDS apart belong to one.
Each event has its time in UTC, and the seconds since the beginning of the incident that it belongs to.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal, NamedTuple

from ledgerops.analysis.finding_history import (
    LOST,
    MIN_STATUS_SECONDS,
    OVER,
    Change,
    FindingHistory,
    FindingPeriod,
    settled,
)
from ledgerops.common import format
from ledgerops.model.finding import Severity
from ledgerops.model.spark_progress import format_instant

MAX_GAP_SECONDS = 300.0  # between findings of one incident: as long as Alertmanager waits before it repeats a group
MARGIN_SECONDS = 60.0  # before and after an incident, in which events belong to it
MIN_DELAY_SECONDS = 5.0  # from beginning to detection: a shorter delay is not shown
Findings = Mapping[str, FindingHistory]  # by query
LOOP = ("fail", "restart")
FIRST_EVENTS, LAST_EVENTS = 5, 2  # of a crash loop that are listed
CALM = ("healthy", "idle", "starting")
What = Literal["start", "restart", "stop", "fail", "begin", "end", "status", "root"]
ORDER: tuple[What, ...] = ("start", "restart", "begin", "root", "end", "status", "fail", "stop")


@dataclass(frozen=True, slots=True)
class Event:
    """One thing that happened to one query."""

    at: float
    query: str
    what: What
    text: str
    rule: str | None = None
    severity: Severity | None = None
    explained_by: tuple[str, ...] = ()


class Incident(NamedTuple):
    """A time with findings at warning or above, and the queries that had them. Instants are epoch seconds."""

    began: float
    ended: float | None  # None while it lasts
    queries: tuple[str, ...]


def events(findings: Findings, since: float = 0.0, query: str | None = None) -> list[Event]:
    """All events from `since` (epoch seconds) on, in the order of their times."""
    found = [each for name, one in findings.items() if query in (None, name) for each in _events_of(one)]
    return sorted((each for each in found if each.at >= since), key=lambda each: (each.at, ORDER.index(each.what)))


def _events_of(history: FindingHistory) -> Iterator[Event]:
    name = history.query
    yield from _folded(sorted(_run_events(history), key=lambda each: (each.at, ORDER.index(each.what))))
    for period in history.periods:
        yield from _period_events(period, history.causes(period))
    statuses = settled(history.statuses, alike=CALM)
    for before, after in pairwise(statuses):
        if after.value not in OVER and before.value not in OVER:
            yield Event(after.at, name, "status", f"status changed to {after.value}".replace("_", " "))
    lasting = [
        each
        for each, after in pairwise([*history.roots, Change(history.last + MIN_STATUS_SECONDS, "")])
        if after.at - each.at >= MIN_STATUS_SECONDS  # what remains for a moment at the end of an incident is none
    ]
    roots = [each for each in settled(lasting) if each.value]
    for before, after in pairwise(roots):
        if before.value != after.value:
            yield Event(after.at, name, "root", f"root cause changed from {before.value} to {after.value}", after.value)


def _run_events(history: FindingHistory) -> Iterator[Event]:
    """Starts and ends of runs."""
    name = history.query
    for at in history.unrecorded_ends:
        yield Event(at, name, "fail", "nothing was recorded of how the run before ended")
    for run in history.runs:
        what: tuple[What, str] = ("restart", f"restarted, run {run.number}") if run.number > 1 else ("start", "started")
        yield Event(run.at, name, *what)
    for at, reason in history.ends:
        if reason == LOST:
            yield Event(at, name, "fail", "vanished without a report of its end")
        elif reason is None:
            yield Event(at, name, "stop", "stopped")
        else:
            yield Event(at, name, "fail", f"failed: {reason}")


def _folded(events: Sequence[Event]) -> Iterator[Event]:
    """Starts and failures; of many in a row the first and the last, and one line with the number of those between."""
    streak: list[Event] = []
    for event in events:
        if streak and (event.what not in LOOP or event.at - streak[-1].at > MAX_GAP_SECONDS):
            yield from _short(streak)
            streak = []
        streak.append(event)
    yield from _short(streak)


def _short(streak: Sequence[Event]) -> Iterator[Event]:
    hidden = streak[FIRST_EVENTS:-LAST_EVENTS]
    if len(hidden) <= 2:
        yield from streak
        return
    yield from streak[:FIRST_EVENTS]
    failed = sum(event.what == "fail" for event in hidden)
    text = f"failed {format.counted(failed, 'more time')} within {format.duration(hidden[-1].at - hidden[0].at)}"
    yield Event(hidden[0].at, hidden[0].query, "fail", text)
    yield from streak[-LAST_EVENTS:]


def _period_events(period: FindingPeriod, causes: tuple[str, ...]) -> Iterator[Event]:
    finding = period.finding
    why = f", explained by {causes[0]}" if causes else ""
    later = period.seen - period.began
    delay = f", detected {format.duration(later)} later" if later >= MIN_DELAY_SECONDS else ""
    text = f"{finding.severity} {finding.rule} began{why}{delay}: {finding.summary}"
    yield Event(period.began, period.query, "begin", text, finding.rule, finding.severity, causes)
    if period.until is not None and not period.with_run:
        again = f" ({period.times} times)" if period.times > 1 else ""
        text = f"{finding.rule} ended after {format.duration(period.until - period.began)}{again}"
        yield Event(period.until, period.query, "end", text, finding.rule, finding.severity, causes)


def incidents(findings: Findings, since: float = 0.0, query: str | None = None) -> list[Incident]:
    """The incidents that lasted at `since` or began later, oldest first."""
    spans = sorted(
        (period.began, _until(period, one), name)
        for name, one in findings.items()
        if query in (None, name)
        for period in one.periods
        if period.finding.severity != "info"
    )
    merged: list[tuple[float, float, list[str]]] = []
    for began, until, name in spans:
        if merged and began - merged[-1][1] < MAX_GAP_SECONDS:
            first, last, names = merged[-1]
            merged[-1] = (first, max(last, until), names if name in names else [*names, name])
        else:
            merged.append((began, until, [name]))
    return [
        Incident(began, None if until == float("inf") else until, tuple(names))
        for began, until, names in merged
        if until >= since
    ]


def _until(period: FindingPeriod, history: FindingHistory) -> float:
    """When a finding ended. What held when the query was stopped ended with it; what made it fail continues."""
    if period.until is not None:
        return period.until
    stopped = history.statuses and history.statuses[-1].value == "stopped" and history.ends
    return max(period.began, history.ends[-1][0]) if stopped else float("inf")


def incident_of(event: Event, found: Sequence[Incident]) -> Incident | None:
    """The incident that an event belongs to; None where it belongs to none."""
    for incident in found:
        ended = float("inf") if incident.ended is None else incident.ended
        if incident.began - MARGIN_SECONDS <= event.at <= ended + MARGIN_SECONDS:
            return incident
    return None


def timeline(findings: Findings, since: float = 0.0, query: str | None = None) -> dict[str, Any]:
    """The timeline of the diagnosis document: plain JSON types. `seconds` counts from the incident's beginning."""
    found = incidents(findings, since, query)
    return {
        "incidents": [
            {
                "began": format_instant(each.began), "queries": list(each.queries),
                "ended": None if each.ended is None else format_instant(each.ended),
            }
            for each in found
        ],
        "events": [
            {
                "at": format_instant(each.at),
                "seconds": None if (of := incident_of(each, found)) is None else round(each.at - of.began, 3),
                "incident": None if of is None else found.index(of),
                "query": each.query, "what": each.what, "rule": each.rule, "severity": each.severity,
                "explained_by": list(each.explained_by), "text": each.text,
            }
            for each in events(findings, since, query)
        ],
    }  # fmt: skip
