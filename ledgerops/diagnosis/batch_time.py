"""Where the time of a batch goes: what Spark's tasks explain, and what they do not."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import takewhile
from statistics import median
from typing import NamedTuple

from ledgerops.diagnosis import overload, strain
from ledgerops.diagnosis.criteria import VERY_LONG_SECONDS
from ledgerops.model.records import Progress, TaskSummary
from ledgerops.signals.baseline import overran
from ledgerops.signals.memo import once
from ledgerops.signals.query_view import QueryView

MAX_PAIRS = 5  # newest batches whose tasks are known
LOOKBACK_BATCHES = 60  # settled batches searched for tasks: in a busy driver only few batches have theirs read
MIN_PAIRS = 2  # needed for any statement
MAX_WAITING_CPU_SHARE = 0.3  # tasks that compute for less of their time are waiting
MIN_TIMES_USUAL = 2.0  # batch time over the query's usual one, at equal rows
MIN_MAIN_SHARE = 0.5  # of a batch, from which one thing is its main part
MAX_READ_STAGES = 8  # stages of a batch: of more, only the newest were read, and the others' time is unknown
MIN_PART_SHARE = 0.25  # of a batch, from which a part is worth naming beside another cause

Pairs = Sequence[tuple[Progress, TaskSummary]]


@once
def needed(view: QueryView) -> int:
    """How many batches with tasks it takes to say anything: two, or one that is long or that shows growth.

    Such a batch is proof enough, and waiting for a second one would take too long.
    """
    if _second(view):
        return 1
    ended = [batch for batch in view.batches if batch.rows > 0]
    if len(ended) >= MIN_PAIRS:
        return MIN_PAIRS
    long = bool(ended) and ended[0].duration > VERY_LONG_SECONDS
    return 1 if long or overload.growth(view) is not None else MIN_PAIRS


def _second(view: QueryView) -> Sequence[Progress]:
    """The second batch of a run of two, when it is very long: the first pays for warm-up, and it alone is typical."""
    settled = [batch for batch in view.baseline.settled if batch.rows > 0]
    alone = len(settled) == 1 and settled[0].duration > VERY_LONG_SECONDS
    return settled if alone and with_tasks(view, settled) else []


@once
def pairs(view: QueryView) -> Pairs:
    """The newest settled batches with their tasks, newest first; of those that outlast the interval in a row when the
    query is under strain and there are enough of them: the batches before them say how it was."""
    strained = strain.strained(view) and bool(view.trigger.interval)
    for newest in (view.baseline.settled[-2 * MAX_PAIRS :], view.baseline.settled[-LOOKBACK_BATCHES:]):
        if strained:
            long = takewhile(lambda batch: overran(batch, view.trigger.interval), reversed(newest))
            found = with_tasks(view, long)
            if len(found) >= MIN_PAIRS:
                return found
        found = with_tasks(view, reversed(newest))
        if len(found) >= MIN_PAIRS:
            return found
    known = _second(view) or [batch for batch in view.batches if batch.rows > 0]
    return with_tasks(view, reversed(known))


@once
def usual_pairs(view: QueryView) -> Pairs:
    """The same of the batches that serve as 'usual'; empty when there are too few to compare with."""
    found = with_tasks(view, reversed(view.baseline.usual[-8 * MAX_PAIRS :]))
    return found if len(found) >= MIN_PAIRS else []


def with_tasks(
    view: QueryView, batches: Iterable[Progress], most: int = MAX_PAIRS
) -> list[tuple[Progress, TaskSummary]]:
    """The first of these batches whose tasks are known, at most so many."""
    found = []
    for batch in batches:
        tasks = view.history.tasks_of(batch)
        if tasks is not None and tasks.stages and batch.duration > 0:
            found.append((batch, tasks))
        if len(found) == most:
            break
    return found


def slots(view: QueryView, tasks: int) -> int:
    """How many tasks of a stage can run at once: its tasks, or the cores if they are known to be fewer."""
    return max(1, min(tasks, view.cluster.cores or tasks))


class StageTime(NamedTuple):
    """Wall seconds in which at least one stage of a batch was running, and when the last one ended."""

    seconds: float
    ended: float


def stage_time(tasks: TaskSummary) -> StageTime | None:
    """The time in which the stages of a batch were running; None unless all of them are known."""
    spans = [(stage.started, stage.ended) for stage in tasks.stages]
    if not spans or len(spans) >= MAX_READ_STAGES:
        return None
    total, until = 0.0, float("-inf")
    for started, ended in sorted((s, e) for s, e in spans if s is not None and e is not None):
        total += max(0.0, ended - max(started, until))
        until = max(until, ended)
    return StageTime(total, until) if all(s is not None and e is not None for s, e in spans) else None


def split_add_batch(batch: Progress, tasks: TaskSummary, adding: float) -> tuple[float, float, float] | None:
    """Of the `adding` seconds of `add_batch`: those with a running stage, those without, and of the latter those after
    the last stage. None unless all stages are known."""
    inside = stage_time(tasks)
    if inside is None:
        return None
    busy = min(inside.seconds, adding)
    # add_batch is followed by nothing but the commit of the offsets
    after = batch.ended - batch.phases.get("commit_offsets", 0.0) - inside.ended
    return busy, adding - busy, min(max(0.0, after), adding - busy)


class Outside(NamedTuple):
    """Medians over batches: seconds of `add_batch` in which no task ran, how many of them after the last task, and
    the batch duration."""

    seconds: float
    after: float
    duration: float
    batches: int

    @property
    def share(self) -> float:
        """That time as a share of the batch duration, 0 to 1."""
        return self.seconds / self.duration if self.duration > 0 else 0.0


@once
def outside_tasks(view: QueryView) -> Outside | None:
    """None when the tasks of too few batches are known."""
    return _outside(pairs(view), needed(view))


@once
def usually_outside(view: QueryView) -> Outside | None:
    """The same of the batches that serve as 'usual'."""
    return _outside(usual_pairs(view))


def _outside(known: Pairs, least: int = MIN_PAIRS) -> Outside | None:
    found = []
    for batch, tasks in known:
        split = split_add_batch(batch, tasks, batch.phases["add_batch"]) if "add_batch" in batch.phases else None
        if split is not None:
            _, outside, after = split
            found.append((outside, after, batch.duration))
    if len(found) < least:
        return None
    seconds, after, duration = (median(each) for each in zip(*found, strict=True))
    return Outside(seconds, after, duration, len(found))
