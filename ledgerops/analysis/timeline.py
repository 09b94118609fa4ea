"""The story of an incident: what began when, what explained it, what ended; as events, as text and as JSON.

An incident is a time in which something at warning or above held; what lies less than QUIET apart is one incident.
Times are told twice: in UTC, and from the beginning of the incident that they belong to.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal, NamedTuple

from ledgerops.analysis.finding_history import BRIEF, Change, QueryStory, Story, Stretch, settled
from ledgerops.common import format
from ledgerops.model.finding import Severity
from ledgerops.model.spark_progress import format_instant

QUIET = 300.0  # seconds; as long as Alertmanager waits before it sends what is new of a group
BEFORE = 60.0  # seconds before an incident whose events are told with it
TOLD = 5.0  # seconds from the beginning to the first word of it that are worth saying
LOOP = ("fail", "restart")
FIRST, LAST = 5, 2  # events of a crash loop that are told, at its beginning and at its end
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
    """All events of a story from `since` on, in the order of their times."""
    told = [each for name, one in story.queries.items() if query in (None, name) for each in _of(one)]
    return sorted((each for each in told if each.at >= since), key=lambda each: (each.at, ORDER.index(each.what)))


def _of(story: QueryStory) -> Iterator[Event]:
    name = story.query
    yield from _folded(sorted(_life(story), key=lambda each: (each.at, ORDER.index(each.what))))
    for stretch in story.stretches:
        yield from _stretch(stretch)
    statuses = settled(story.statuses, alike=CALM)
    for before, after in pairwise(statuses):
        if after.value not in ("failed", "stopped") and before.value not in ("failed", "stopped"):
            yield Event(after.at, name, "status", f"is now {after.value}".replace("_", " "))
    lasting = [
        each
        for each, after in pairwise([*story.roots, Change(story.last + BRIEF, "")])
        if after.at - each.at >= BRIEF  # the last trace of an incident is no root cause
    ]
    roots = [each for each in settled(lasting) if each.value]
    for before, after in pairwise(roots):
        if before.value != after.value:
            yield Event(after.at, name, "root", f"root cause is now {after.value}, was {before.value}", after.value)


def _life(story: QueryStory) -> Iterator[Event]:
    """Starts and ends of runs."""
    name = story.query
    for run in story.runs:
        first = run.number == 1
        yield Event(
            run.at, name, "start" if first else "restart", "starts" if first else f"starts again, run {run.number}"
        )
    for at, reason in story.ends:
        yield Event(at, name, "stop", "stops") if reason is None else Event(at, name, "fail", f"fails: {reason}")


def _folded(told: Sequence[Event]) -> Iterator[Event]:
    """Starts and failures; of many in a row the first and the last, and in one line how many there were between."""
    streak: list[Event] = []
    for event in told:
        if streak and (event.what not in LOOP or event.at - streak[-1].at > QUIET):
            yield from _short(streak)
            streak = []
        streak.append(event)
    yield from _short(streak)


def _short(streak: Sequence[Event]) -> Iterator[Event]:
    hidden = streak[FIRST:-LAST]
    if len(hidden) <= 2:
        yield from streak
        return
    yield from streak[:FIRST]
    failed = sum(event.what == "fail" for event in hidden)
    text = f"fails {failed} more times in {format.duration(hidden[-1].at - hidden[0].at)}"
    yield Event(hidden[0].at, hidden[0].query, "fail", text)
    yield from streak[-LAST:]


def _stretch(stretch: Stretch) -> Iterator[Event]:
    finding = stretch.finding
    causes = stretch.causes
    why = f", explained by {causes[0]}" if causes else ""
    later = stretch.seen - stretch.began
    told = f" (told {format.duration(later)} later)" if later >= TOLD else ""
    text = f"{finding.severity} {finding.rule} begins{why}{told}: {finding.summary}"
    yield Event(stretch.began, stretch.query, "begin", text, finding.rule, finding.severity, causes)
    if stretch.until is not None and not stretch.with_run:
        again = f", having come {stretch.times} times" if stretch.times > 1 else ""
        text = f"{finding.rule} ends after {format.duration(stretch.until - stretch.began)}{again}"
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
        if merged and began - merged[-1][1] < QUIET:
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
        if incident.began - BEFORE <= event.at <= (float("inf") if incident.ended is None else incident.ended + BEFORE):
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
