"""The timeline of incidents: what began when, what explained it, what ended; as events and as JSON.

An incident is a time with findings at warning or above; findings less than MAX_GAP_SECONDS apart belong to one.
Each event has its time in UTC, and the seconds since the beginning of the incident that it belongs to.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal, NamedTuple

from ledgerops.analysis.finding_history import (
    LOST,
    MIN_STATUS_SECONDS,
    OVER,
    Change,
    QueryStory,
    Story,
    Stretch,
    settled,
)
from ledgerops.common import format
from ledgerops.model.finding import Severity
from ledgerops.model.spark_progress import format_instant

MAX_GAP_SECONDS = 300.0  # between findings of one incident: as long as Alertmanager waits before it sends a group again
MARGIN_SECONDS = 60.0  # before and after an incident: events in it belong to the incident
MIN_DELAY_SECONDS = 5.0  # from beginning to detection: a shorter delay is not shown
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
    began: float
    ended: float | None  # None while it lasts
    queries: tuple[str, ...]


def events(story: Story, since: float = 0.0, query: str | None = None) -> list[Event]:
    """All events from `since` (epoch seconds) on, in the order of their times."""
    found = [each for name, one in story.queries.items() if query in (None, name) for each in _of(one)]
    return sorted((each for each in found if each.at >= since), key=lambda each: (each.at, ORDER.index(each.what)))


def _of(story: QueryStory) -> Iterator[Event]:
    name = story.query
    yield from _folded(sorted(_life(story), key=lambda each: (each.at, ORDER.index(each.what))))
    for stretch in story.stretches:
        yield from _stretch(stretch)
    statuses = settled(story.statuses, alike=CALM)
    for before, after in pairwise(statuses):
        if after.value not in OVER and before.value not in OVER:
            yield Event(after.at, name, "status", f"status changed to {after.value}".replace("_", " "))
    lasting = [
        each
        for each, after in pairwise([*story.roots, Change(story.last + MIN_STATUS_SECONDS, "")])
        if after.at - each.at >= MIN_STATUS_SECONDS  # the last trace of an incident is no root cause
    ]
    roots = [each for each in settled(lasting) if each.value]
    for before, after in pairwise(roots):
        if before.value != after.value:
            yield Event(after.at, name, "root", f"root cause changed from {before.value} to {after.value}", after.value)


def _life(story: QueryStory) -> Iterator[Event]:
    """Starts and ends of runs."""
    name = story.query
    for run in story.runs:
        first = run.number == 1
        yield Event(
            run.at, name, "start" if first else "restart", "started" if first else f"restarted, run {run.number}"
        )
    for at, reason in story.ends:
        if reason == LOST:
            yield Event(at, name, "fail", "vanished without a report of its end")
            continue
        yield Event(at, name, "stop", "stopped") if reason is None else Event(at, name, "fail", f"failed: {reason}")


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
    text = f"failed {failed} more times within {format.duration(hidden[-1].at - hidden[0].at)}"
    yield Event(hidden[0].at, hidden[0].query, "fail", text)
    yield from streak[-LAST_EVENTS:]


def _stretch(stretch: Stretch) -> Iterator[Event]:
    finding = stretch.finding
    causes = stretch.causes
    why = f", explained by {causes[0]}" if causes else ""
    later = stretch.seen - stretch.began
    delay = f", detected {format.duration(later)} later" if later >= MIN_DELAY_SECONDS else ""
    text = f"{finding.severity} {finding.rule} began{why}{delay}: {finding.summary}"
    yield Event(stretch.began, stretch.query, "begin", text, finding.rule, finding.severity, causes)
    if stretch.until is not None and not stretch.with_run:
        again = f" ({stretch.times} times)" if stretch.times > 1 else ""
        text = f"{finding.rule} ended after {format.duration(stretch.until - stretch.began)}{again}"
        yield Event(stretch.until, stretch.query, "end", text, finding.rule, finding.severity, causes)


def incidents(story: Story, since: float = 0.0, query: str | None = None) -> list[Incident]:
    """The incidents that lasted at `since` or began later, oldest first."""
    spans = sorted(
        (stretch.began, _until(stretch, one), name)
        for name, one in story.queries.items()
        if query in (None, name)
        for stretch in one.stretches
        if stretch.finding.severity != "info"
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


def _until(stretch: Stretch, story: QueryStory) -> float:
    """When it was over; what held when the query was stopped ended with it, what made it fail goes on."""
    if stretch.until is not None:
        return stretch.until
    stopped = story.statuses and story.statuses[-1].value == "stopped" and story.ends
    return max(stretch.began, story.ends[-1][0]) if stopped else float("inf")


def incident_of(event: Event, found: Sequence[Incident]) -> Incident | None:
    """The incident that an event belongs to; None for one that lies apart from all."""
    for incident in found:
        if (
            incident.began - MARGIN_SECONDS
            <= event.at
            <= (float("inf") if incident.ended is None else incident.ended + MARGIN_SECONDS)
        ):
            return incident
    return None


def timeline(story: Story, since: float = 0.0, query: str | None = None) -> dict[str, Any]:
    """The timeline of the diagnosis document: plain JSON types. `seconds` counts from the incident's beginning."""
    found = incidents(story, since, query)
    return {
        "incidents": [
            {
                "began": format_instant(each.began),
                "ended": None if each.ended is None else format_instant(each.ended),
                "queries": list(each.queries),
            }
            for each in found
        ],
        "events": [
            {
                "at": format_instant(each.at),
                "seconds": None if (of := incident_of(each, found)) is None else round(each.at - of.began, 3),
                "incident": None if of is None else found.index(of),
                "query": each.query,
                "what": each.what,
                "rule": each.rule,
                "severity": each.severity,
                "explained_by": list(each.explained_by),
                "text": each.text,
            }
            for each in events(story, since, query)
        ],
    }
