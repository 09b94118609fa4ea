"""What else in the driver takes the cores: a query that holds the slots, one that takes more, a crowd of them, or a job
that belongs to none that is watched."""

from bisect import bisect_right
from collections.abc import Sequence
from itertools import islice
from typing import NamedTuple

from ledgerops.diagnosis.batch_parts import Span, knows_ready, seconds_of, stage_time, without_slot
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

JOB = "another job of the application"  # one that belongs to no watched query
OTHERS_SHARE = 0.35  # of the cores that others must use to hold up a query
NEWEST_SAMPLES = 5  # of the executors, most of which must show that all slots are taken
MIN_TAKING_SHARE = 0.4  # of all cores: two queries that share them evenly take half each, and hold up each other
MIN_TAKEN_SHARE = 0.75  # of all cores, taken by all queries together: else no query waits


class Neighbour(NamedTuple):
    """Another query of the driver, several, or JOB, that take the cores. Figures are in cores."""

    query: str
    takes: float
    took: float | None  # before; None when it was not there
    own: float
    slots: int
    since: float
    holds: bool = False  # its tasks had the slots while batches of this query waited for one
    several: bool = False  # all other queries together


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


def _spans(history: History, since: float, until: float) -> list[Span]:
    """From when to when its batches ran that touch the time between two instants, with the one that runs now."""
    spans = [(each.started, each.ended) for each in history.run if each.ended >= since and each.started <= until]
    if history.running is not None and history.running.since <= until:
        spans.append((history.running.since, until))
    return spans


def _overlap(one: Span, other: Span) -> float:
    return max(0.0, min(one[1], other[1]) - max(one[0], other[0]))


def cores_taken(history: History, since: float, until: float) -> float | None:
    """Cores that a query's tasks use between two instants, by what it did before `until` only.

    Its tasks are read of some batches only; the others, and the one that runs now, count with what these use.
    """
    spans = _spans(history, since, until)
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
    width, newest = view.cluster.cores, list(view.hosts)[-NEWEST_SAMPLES:]
    full = [full for host in newest if (full := _is_full(host)) is not None]
    if not width or not sum(full) > len(full) / 2:
        return False
    others = (cores_taken(other, newest[0].at, view.now) or 0.0 for other in view.others)
    return sum(others) >= OTHERS_SHARE * width


def _is_full(host: Host) -> bool | None:
    running = [each for each in host.executors if each.active and each.cores]
    return sum(e.active_tasks for e in running) >= sum(e.cores for e in running) if running else None


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
        # taken for granted where no tasks are known
        and all(each.cpu_seconds >= MOSTLY * each.run_seconds for each in list(other.tasks)[-1:])
    ]


@once
def neighbour(view: QueryView) -> Neighbour | None:
    """The query that holds up this one: it takes most of the cores, more than it used to, while this one, at no more
    rows than usual, needs much longer for them. Without a past, all slots must be taken. Or what had the slots whenever
    batches of this one waited for one; that may be all others together."""
    worth = examined(view)
    if not view.others and not worth:
        return None
    holder, width = _holder(view), view.cluster.cores
    if not width or (holder is None and not (view.others and worth)):
        return None
    newest = judged(view)
    lost = view.baseline.slowdown_of(newest)
    many = holder is None and len(_waits(view)) >= MIN_BATCHES and slots_taken(view)
    slower = holder is not None or many or (lost.factor >= CHANGED_RATIO if lost is not None else slots_taken(view))
    until = view.now if view.run.unfinished_seconds else newest[-1].ended if newest else view.now
    own = cores_taken(view.history, newest[0].started, until) if newest and slower else None
    if own is None:
        return None
    since, total, count, found = newest[0].started, own, 0, list[Neighbour]()
    if holder == JOB:
        return Neighbour(JOB, float(width), None, own, width, since, holds=True)
    for other in view.others:
        takes = cores_taken(other, since, until) if other.ended is None or other.ended.at >= since else None
        if takes is None:
            continue
        total += takes
        count += takes > 0
        took = _before(other, view)
        if other.query == holder:
            return Neighbour(other.query, takes, None, own, width, since, holds=True)
        if takes >= max(MIN_TAKING_SHARE * width, CHANGED_RATIO * own, CHANGED_RATIO * (took or 0.0)):
            found.append(Neighbour(other.query, takes, took, own, width, since))
    if many and count > 1 and len(found) != 1 and total - own >= MOSTLY * width:
        return Neighbour(f"{count} other queries", total - own, None, own, width, since, holds=True, several=True)
    return max(found, key=lambda each: each.takes, default=None) if total >= MIN_TAKEN_SHARE * width else None


def _holder(view: QueryView) -> str | None:
    """What had the slots while batches of this query waited for one: the query whose batches ran in nearly all of that
    time; JOB where every look then shows them taken, and no task of a query can have had one."""
    width, batches = view.cluster.cores, _waits(view)
    waits = [span for spans in batches for span in spans]
    if not width or not batches:
        return None
    # looks at other times tell nothing: those of a neighbour with their rhythm may all be from between two batches
    during = [host for host in view.hosts if any(since <= host.at <= until for since, until in waits)]
    looks = {host.at: full for host in during if (full := _is_full(host)) is not None}
    if looks and not any(looks.values()):
        return None
    since = batches[-1][0][0]
    total = seconds_of(waits)
    for other in view.others if len(batches) >= MIN_BATCHES else ():
        rate = cores_per_batch_second(other, since, view.now)
        if rate is None or rate < MIN_TAKEN_SHARE * width:
            continue
        held = sum(_overlap(span, wait) for wait in waits for span in _spans(other, since, view.now))
        if held >= NEARLY_ALL * total:
            return other.query
    idle = (at for at in looks if all(_waited(each, at) for each in (view.history, *view.others)))
    return JOB if all(looks.values()) and len(list(islice(idle, MIN_BATCHES))) == MIN_BATCHES else None


def _waited(history: History, at: float) -> bool:
    """Whether no task of a query ran at an instant: a stage was ready and had no slot, or no batch of its run was on.
    False where that is not known, or not yet."""
    batches = history.batches
    place = bisect_right(batches, at, key=lambda batch: batch.started)
    before, after = batches[place - 1] if place else None, batches[place] if place < len(batches) else None
    if before is None:
        return False
    if at <= before.ended:
        tasks = history.tasks_of(before)
        if tasks is None or stage_time(tasks) is None or not knows_ready(tasks):
            return False
        return any(since <= at <= until for since, until in without_slot(before, tasks))
    if after is not None:
        return before.run_id == after.run_id
    if history.ended is not None:
        return not history.ended.unwatched and history.ended.at < at
    began = history.running.since if history.running is not None else history.last_seen or 0.0
    return before.run_id == history.run_id and at < began


def _waits(view: QueryView) -> list[list[Span]]:
    """Of batches that mostly wait for a slot, newest first, when they did; none where that is long ago."""
    found, recent = list[list[Span]](), view.now - MAX_SAMPLE_AGE_SECONDS
    for batch in reversed(view.baseline.settled[-LOOKBACK_BATCHES:]):
        if not found and batch.ended < recent:
            break
        tasks = view.history.tasks_of(batch)
        if tasks is None or "add_batch" not in batch.phases or stage_time(tasks) is None:
            continue
        waits = without_slot(batch, tasks)
        if waits and seconds_of(waits) >= MOSTLY * batch.duration:
            found.append(waits)
            if len(found) == SHOWN_BATCHES:
                break
        elif batch.duration > LONG_SECONDS:
            break  # it waits no longer, or did not yet
    return found


def _before(other: History, view: QueryView) -> float | None:
    """What the other query took while this one had its usual batches: in their last minute, or since the last batch of
    it that had ended by then began, where that is longer ago."""
    usual = view.baseline.usual
    if not usual:
        return None
    until = usual[-1].ended
    last = next((batch.started for batch in reversed(other.run) if batch.ended <= until), until)
    since = max(usual[0].started, min(last, until - WINDOW_SECONDS))
    return cores_taken(other, since, until) if _spans(other, since, until) else None
