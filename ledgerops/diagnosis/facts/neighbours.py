"""Other queries of the driver that take the cores: one that holds the slots, one that takes more, or a crowd."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ledgerops.diagnosis.harm import examined, judged
from ledgerops.diagnosis.limits import (
    LONG_SECONDS,
    LOOKBACK_BATCHES,
    MAX_SAMPLE_AGE_SECONDS,
    MIN_BATCHES,
    MOSTLY,
    NEARLY_ALL,
    SHOWN_BATCHES,
)
from ledgerops.model.history import History
from ledgerops.model.records import Host
from ledgerops.signals.baseline import CHANGED_RATIO
from ledgerops.signals.memo import once
from ledgerops.signals.query_view import QueryView
from ledgerops.signals.run import WINDOW_SECONDS

OTHERS_SHARE = 0.35  # of the cores that others must use to hold up a query
NEWEST_SAMPLES = 5  # of the executors, most of which must show that all slots are taken
MIN_TAKING_SHARE = 0.4  # of all cores: two queries that share them evenly take half each, and hold up each other
MIN_TAKEN_SHARE = 0.75  # of all cores, taken by all queries together: else no query waits


class Neighbour(NamedTuple):
    """Another query of the driver that takes the cores. Figures are in cores."""

    query: str
    takes: float
    took: float | None  # before; None when it was not there
    own: float
    slots: int
    since: float
    holds: bool = False  # its tasks had the slots while batches of this query waited for their first task


def cores_per_batch_second(history: History, since: float, until: float) -> float | None:
    """Cores that the tasks of a query use in a second of its batches: of those that ended between two instants and have
    tasks, else of the newest one before."""
    ran = spent = 0.0
    for batch in reversed(history.run):
        if batch.ended > until:
            continue
        if batch.ended < since and spent:
            break
        tasks = history.tasks_of(batch)
        if tasks is not None and tasks.stages:
            ran += tasks.run_seconds
            spent += batch.duration
    return ran / spent if spent else None


def _spans(history: History, since: float, until: float, running: bool = True) -> list[tuple[float, float]]:
    """From when to when its batches ran that touch the time between two instants, with the one that runs now."""
    spans = [(each.started, each.ended) for each in history.run if each.ended >= since and each.started <= until]
    if running and history.running is not None:
        spans.append((history.running.since, until))
    return spans


def _overlap(one: tuple[float, float], other: tuple[float, float]) -> float:
    return max(0.0, min(one[1], other[1]) - max(one[0], other[0]))


def cores_taken(history: History, since: float, until: float, earlier: bool = False) -> float | None:
    """Cores that a query's tasks use between two instants; with `earlier` by what it did before `until` only.

    Its tasks are read of some batches only; the others, and the one that runs now, count with what these use.
    """
    spans = _spans(history, since, until, running=not earlier)
    if not spans or until <= since:
        return 0.0
    rate = cores_per_batch_second(history, since, until)
    if rate is None:
        return None
    busy = sum(_overlap(span, (since, until)) for span in spans)
    return rate * min(1.0, busy / (until - since))


@once
def slots_taken(view: QueryView) -> bool:
    """Whether tasks had every slot in most of the newest samples of the executors, and those of other queries a good
    part of them; tasks that sleep hold a slot, too, on a machine with free cores."""
    width, full = view.cluster.cores, _full_slots(view)
    if not width or not sum(full) > len(full) / 2:
        return False
    since = list(view.hosts)[-NEWEST_SAMPLES:][0].at
    others = (cores_taken(other, since, view.now) or 0.0 for other in view.others)
    return sum(others) >= OTHERS_SHARE * width


def _full_slots(view: QueryView) -> list[bool]:
    """Of each of the newest samples of the executors whether tasks had every slot."""
    return [full for host in list(view.hosts)[-NEWEST_SAMPLES:] if (full := _is_full(host)) is not None]


def _is_full(host: Host) -> bool | None:
    running = [each for each in host.executors if each.active and each.cores]
    return sum(e.active_tasks for e in running) >= sum(e.cores for e in running) if running else None


def _slots_were_free(view: QueryView, waits: Sequence[tuple[float, float]]) -> bool:
    """Whether each sample of the executors that was taken while the query waited shows a free slot. Others tell
    nothing: those of a neighbour with their rhythm may all be from between two of its batches."""
    during = [host for host in view.hosts if any(since <= host.at <= until for since, until in waits)]
    told = [full for host in during if (full := _is_full(host)) is not None]
    return bool(told) and not any(told)


@once
def crowd(view: QueryView) -> Sequence[History]:
    """The other queries of the driver that outlast their interval and use the cores.

    Queries that all wait for one slow database are late together and leave the cores free.
    """
    fresh = view.now - WINDOW_SECONDS
    return [
        other
        for other in view.others
        if other.last is not None
        and other.last.ended >= fresh
        and other.plan is not None
        and other.plan.trigger_interval
        and other.last.duration > other.plan.trigger_interval
        and _computes(other)
    ]


def _computes(other: History) -> bool:
    """Whether the tasks of its newest batch with tasks used the cores; taken for granted where none is known."""
    return all(each.cpu_seconds >= MOSTLY * each.run_seconds for each in list(other.tasks)[-1:])


@once
def neighbour(view: QueryView) -> Neighbour | None:
    """The query that holds up this one: it takes most of the cores, more than it used to, while this one, at no more
    rows than usual, needs much longer for them. Without a past, all slots must be taken. Or its batches ran whenever
    this one's waited for their first task."""
    if not view.others:
        return None
    holder, width = _holder(view), view.cluster.cores
    if not width or (holder is None and not examined(view)):
        return None
    newest = judged(view)
    lost = view.baseline.slowdown_of(newest)
    slower = holder is not None or (lost.factor >= CHANGED_RATIO if lost is not None else slots_taken(view))
    until = view.now if view.run.unfinished_seconds else newest[-1].ended if newest else view.now
    own = cores_taken(view.history, newest[0].started, until) if newest and slower else None
    if own is None:
        return None
    since, total, found = newest[0].started, own, list[Neighbour]()
    for other in view.others:
        takes = cores_taken(other, since, until) if other.ended is None or other.ended.at >= since else None
        if takes is None:
            continue
        total += takes
        took = _before(other, view)
        if other.query == holder:
            return Neighbour(other.query, takes, None, own, width, since, holds=True)
        if takes >= max(MIN_TAKING_SHARE * width, CHANGED_RATIO * own, CHANGED_RATIO * (took or 0.0)):
            found.append(Neighbour(other.query, takes, took, own, width, since))
    return max(found, key=lambda each: each.takes, default=None) if total >= MIN_TAKEN_SHARE * width else None


def _holder(view: QueryView) -> str | None:
    """The query whose batches ran in nearly all of the time in which this one's waited for their first task."""
    width, waits = view.cluster.cores, _waits(view)
    if not width or len(waits) < MIN_BATCHES or waits[0][1] < view.now - MAX_SAMPLE_AGE_SECONDS:
        return None
    if _slots_were_free(view, waits):
        return None
    total = sum(until - since for since, until in waits)
    for other in view.others:
        rate = cores_per_batch_second(other, waits[-1][0], view.now)
        if rate is None or rate < MIN_TAKEN_SHARE * width:
            continue
        spans = _spans(other, waits[-1][0], view.now)
        held = sum(_overlap(span, wait) for wait in waits for span in spans)
        if held >= NEARLY_ALL * total:
            return other.query
    return None


def _waits(view: QueryView) -> list[tuple[float, float]]:
    """From the start of `add_batch` to the first task, newest first, of batches that mostly wait so."""
    found = []
    for batch in reversed(view.baseline.settled[-LOOKBACK_BATCHES:]):
        tasks = view.history.tasks_of(batch)
        if tasks is None or "add_batch" not in batch.phases:
            continue
        began = batch.adding_since
        first = min((stage.started for stage in tasks.stages if stage.started is not None), default=began)
        if first - began >= MOSTLY * batch.duration:
            found.append((began, min(first, batch.ended)))
            if len(found) == SHOWN_BATCHES:
                break
        elif batch.duration > LONG_SECONDS:
            break  # it waits no longer, or did not yet
    return found


def _before(other: History, view: QueryView) -> float | None:
    """What the other query took while this one had its usual batches."""
    usual = view.baseline.usual
    if not usual:
        return None
    until = usual[-1].ended
    since = max(usual[0].started, until - WINDOW_SECONDS)
    if not any(since <= batch.ended <= until for batch in other.run):
        return None
    return cores_taken(other, since, until, earlier=True)
