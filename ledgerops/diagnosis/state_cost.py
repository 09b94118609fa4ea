"""The cost of a query's state and its growth, for the rules on state, memory and garbage collection.

Spark sums the times of a state operator over its tasks. Wall time is that sum over the tasks that run at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from statistics import median
from typing import NamedTuple

from ledgerops.diagnosis import batch_time
from ledgerops.model.records import DRIVER, Host, Progress, StateOperator, TaskSummary
from ledgerops.signals.baseline import RECENT_BATCHES
from ledgerops.signals.memo import once
from ledgerops.signals.query_view import QueryView

# operators that keep time themselves, with timers, timeouts or a time to live
OWN_TIME_OPERATORS = ("transformWithState", "flatMapGroupsWithState", "mapGroupsWithState", "applyInPandasWithState")
RESERVED_BYTES = 300 * 2**20  # of a heap, which Spark keeps for itself (docs, "Memory Management Overview")
UNIFIED_MEMORY_SHARE = 0.6  # spark.memory.fraction: REST's maxMemory is this share of the rest of the heap
# of the task time: Spark's executors page highlights more than that; Dr. Elephant calls it "moderate"
MIN_GC_SHARE = 0.10
GC_NOW_SECONDS = 12.0  # the newest two executor samples, at one every 10 s
GC_WINDOW_SECONDS = 30.0  # the newest four
WATERMARK_BATCHES = 10  # newest batches, one of which has a watermark or an event time where the query has one
MIN_KEPT_RATIO = 0.05  # state rows that stay for each row read: below it the state does not grow
STILL_BATCHES = 3  # batches that leave no rows, after which growth is over


def parallel_tasks(view: QueryView, operator: StateOperator) -> int:
    """How many tasks of an operator run at once: the divisor from task seconds to wall seconds."""
    return batch_time.slots(view, operator.shuffle_partitions or 1)


def commit_seconds(view: QueryView, batch: Progress) -> float:
    """Wall seconds of a batch that go into saving state, over all operators."""
    return sum(operator.commit_seconds / parallel_tasks(view, operator) for operator in batch.operators)


def has_watermark(view: QueryView) -> bool:
    """Whether the query has a watermark, by its plan or by what its newest batches report."""
    if view.plan.watermarks:
        return True
    newest = view.batches[-WATERMARK_BATCHES:]
    return any(batch.watermark is not None or batch.event_time_max is not None for batch in newest)


def keeps_own_time(operator: StateOperator) -> bool:
    """Whether an operator can forget by timers, timeouts or a time to live; by its metrics where it has them."""
    if not operator.name.startswith(OWN_TIME_OPERATORS):
        return False
    timers = [value for name, value in operator.custom.items() if "Timers" in name]
    lives = [value for name, value in operator.custom.items() if name.endswith("WithTTLVars")]
    return not (timers and lives) or any(timers) or any(lives)


def heap_bytes(view: QueryView) -> int | None:
    """The heaps of all executors in bytes, by what Spark makes of them; None when no executor was seen."""
    executors = view.cluster.executors
    return int(sum(executor.memory_max_bytes / UNIFIED_MEMORY_SHARE + RESERVED_BYTES for executor in executors)) or None


def off_heap(view: QueryView) -> bool:
    """Whether the state is RocksDB's: native memory and local disk."""
    return view.last is not None and any(
        name.startswith("rocksdb") for operator in view.last.operators for name in operator.custom
    )


class Collecting(NamedTuple):
    """Garbage collection against run time of tasks, both in seconds; `share` of the run time, 0 to 1."""

    gc_seconds: float
    run_seconds: float
    batches: int

    @property
    def share(self) -> float:
        """Garbage collection as a share of the run time, 0 to 1."""
        return min(1.0, self.gc_seconds / self.run_seconds) if self.run_seconds > 0 else 0.0


@once
def newest_with_tasks(view: QueryView) -> Sequence[tuple[Progress, TaskSummary]]:
    """The newest three of the last ten settled batches whose tasks are known, newest first."""
    return batch_time.with_tasks(view, reversed(view.baseline.settled[-2 * batch_time.MAX_PAIRS :]), RECENT_BATCHES)


@once
def gc_of_stages(view: QueryView) -> Collecting | None:
    """Over the stages of the newest three batches whose tasks are known; None when fewer than two are."""
    newest = newest_with_tasks(view)
    if len(newest) < batch_time.MIN_PAIRS:
        return None
    stages = [stage for _, tasks in newest for stage in tasks.stages]
    return Collecting(sum(each.gc_seconds for each in stages), sum(each.run_seconds for each in stages), len(newest))


@once
def gc_of_executors(view: QueryView) -> Collecting | None:
    """How all executors' totals grew from the oldest sample of the last GC_WINDOW_SECONDS to the newest.

    In local mode there is only the driver, of which Spark reports its whole time in place of the tasks' (since 4.0).
    """
    return _collected(view, GC_WINDOW_SECONDS)


@once
def gc_goes_on(view: QueryView) -> bool:
    """Whether the executors still spend much of their time in garbage collection; True also without samples."""
    now = _collected(view, GC_NOW_SECONDS)
    return now is None or now.share >= MIN_GC_SHARE


def _collected(view: QueryView, window: float) -> Collecting | None:
    newest = max((host.at for host in view.hosts if host.workers), default=float("-inf"))
    samples = [host for host in view.hosts if host.workers and newest - window <= host.at]
    if len(samples) < 2 or view.now - newest > window:
        return None
    gc, run = (later - before for before, later in zip(_totals(samples[0]), _totals(samples[-1]), strict=True))
    return Collecting(gc, run, 0) if gc >= 0 and run > 0 else None


@once
def gc_of_batches(view: QueryView) -> float | None:
    """Share of the newest batches' wall time in which garbage collection stopped all tasks; None if unknown."""
    stages = gc_of_stages(view)
    if stages is None:
        return None
    newest = newest_with_tasks(view)
    slots = batch_time.slots(view, max(stage.tasks for _, tasks in newest for stage in tasks.stages))
    spent = sum(batch.duration for batch, _ in newest)
    share = stages.gc_seconds / slots / spent if spent > 0 else 0.0
    executors = gc_of_executors(view)
    if executors is not None and {each.executor_id for each in view.cluster.executors} == {DRIVER}:
        share = max(share, executors.share)  # the driver's own work is stopped, too
    return min(1.0, share)


def _totals(host: Host) -> tuple[float, float]:
    return sum(each.gc_seconds for each in host.workers), sum(each.run_seconds for each in host.workers)


def reports(batches: Sequence[Progress], index: int) -> list[tuple[Progress, StateOperator]]:
    """The batches with what they say of one operator, by its place in the plan."""
    return [(batch, batch.operators[index]) for batch in batches if index < len(batch.operators)]


def growing(reported: Sequence[tuple[Progress, StateOperator]]) -> Sequence[tuple[Progress, StateOperator]]:
    """The newest of these batches over which an operator kept growing, from the batch before its growth on.

    A plateau before it tells nothing of its pace, and after one it is over: then there are none.
    """
    still = 0
    for place in range(len(reported) - 1, 0, -1):
        batch, state = reported[place]
        grown = state.rows - reported[place - 1][1].rows
        still = still + 1 if grown < MIN_KEPT_RATIO * batch.rows else 0 if batch.rows else still
        if still == STILL_BATCHES:
            return reported[place + STILL_BATCHES - 1 :]
    return reported


def forgets(view: QueryView, reported: Sequence[tuple[Progress, StateOperator]]) -> bool:
    """Whether an operator removed rows in these batches, or the query's state shrank within the hour remembered."""
    if any(state.removed for _, state in reported):
        return True
    rows = [point.state_rows for point in view.history.trend]
    return any(later < earlier for earlier, later in pairwise(rows))


def wasted(view: QueryView) -> Sequence[tuple[str, float, float]]:
    """What state and memory cost beyond the work on rows: what, seconds of a batch, its duration; medians of three."""
    latest = view.baseline.recent
    if len(latest) < RECENT_BATCHES:
        return []
    duration = median(batch.duration for batch in latest)
    gc = gc_of_stages(view)
    found = []
    if gc is not None and gc.share >= MIN_GC_SHARE:
        found.append(("garbage collection", (gc_of_batches(view) or 0.0) * duration, duration))
    saving = median(commit_seconds(view, batch) for batch in latest)
    if saving >= batch_time.MIN_MAIN_SHARE * duration:
        found.append(("saving the state", saving, duration))
    return found
