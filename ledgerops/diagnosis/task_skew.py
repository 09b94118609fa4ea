"""How tasks and executors share the work of a stage, and what an uneven share costs a batch."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import NamedTuple

from ledgerops.diagnosis import batch_time, sink_wait, state_cost
from ledgerops.model.records import StageSummary
from ledgerops.signals.memo import once
from ledgerops.signals.query_view import QueryView

MIN_UNEVEN_RATIO = 1.5  # of the stage's time over that of an even split
MIN_RECORDS = 200  # fewer records fall on few tasks unevenly by chance


class Uneven(NamedTuple):
    """A stage whose largest task holds `share` of the records, which makes the stage `factor` times as long."""

    stage: StageSummary
    share: float
    factor: float
    slots: int
    batches: int
    cost: float = 0.0  # share of the batch's duration that an even split would save


def uneven_stage(view: QueryView, shuffle: bool) -> Uneven | None:
    """The stage (that reads a shuffle, or that reads the source) with the most uneven records, by medians.

    None without known cores, too: over as many slots as tasks any stage of a few rows a task looks uneven.
    """
    if view.cluster.cores is None:
        return None
    by_place: dict[int, list[Uneven]] = {}
    for batch, tasks in batch_time.pairs(view):
        several = [stage for stage in tasks.stages if stage.tasks > 1 and stage.reads_shuffle is shuffle]
        for place, stage in enumerate(several):
            if stage.records >= MIN_RECORDS:
                width = batch_time.slots(view, stage.tasks)
                share = min(1.0, stage.records_max / stage.records)
                cost = lost_seconds(stage, width) / batch.duration if batch.duration > 0 else 0.0
                by_place.setdefault(place, []).append(Uneven(stage, share, width * share, width, 0, cost))
    worst = [
        sorted(found, key=lambda each: each.factor)[len(found) // 2]._replace(
            batches=len(found), cost=median(each.cost for each in found)
        )
        for found in by_place.values()
        if len(found) >= batch_time.needed(view)
    ]
    return max(worst, key=lambda each: each.factor, default=None)


def lost_seconds(stage: StageSummary, slots: int) -> float:
    """Wall time of a stage beyond that of an even split of its run time over the slots."""
    return max(0.0, (stage.wall_seconds or 0.0) - stage.run_seconds / slots)


class Waste(NamedTuple):
    """Time of a batch that goes into something other than the work on its rows."""

    what: str
    seconds: float
    duration: float

    @property
    def factor(self) -> float:
        """How much faster a batch would be without it."""
        return self.duration / max(self.duration - self.seconds, 0.05 * self.duration)


def wasted(view: QueryView) -> Waste | None:
    """The larger of: time outside tasks or waiting in the writing stage, time that uneven tasks cost, garbage
    collection, and saving the state."""
    found = [Waste(*each) for each in state_cost.wasted(view)]
    outside = batch_time.outside_tasks(view)
    if outside is not None and sink_wait.blocks(view, outside):
        found.append(Waste("the sink, outside Spark's tasks", outside.seconds, outside.duration))
    waiting = sink_wait.waiting_stage(view)
    if waiting is not None and sink_wait.waits(view, waiting):
        found.append(Waste("waiting in the stage that writes", waiting.seconds, waiting.duration))
    uneven = uneven_stage(view, shuffle=True)
    if uneven is not None and uneven.factor >= MIN_UNEVEN_RATIO and uneven.stage.wall_seconds is not None:
        newest = view.baseline.recent or view.batches[-1:]
        lost = lost_seconds(uneven.stage, uneven.slots)
        found.append(Waste("one task that has most of the rows", lost, median(batch.duration for batch in newest)))
    return max(found, key=lambda each: each.seconds, default=None)


class Slowest(NamedTuple):
    """The slowest task of a stage against the mean of the others, without more records than they have."""

    stage: StageSummary
    seconds: float
    others: float
    lost: float  # seconds of wall time that the stage would save if it were as fast as they
    duration: float  # of the batch

    @property
    def ratio(self) -> float:
        """How many times as long the task took as the mean of the others."""
        return self.seconds / max(self.others, 0.001)


def slowest_tasks(view: QueryView, even: float) -> Sequence[Slowest]:
    """Of each newest batch with tasks, newest first, the stage that waited longest for one task.

    A task with more than `even` times the others' mean records is slow for its records, and is left out.
    """
    found = []
    for batch, tasks in batch_time.pairs(view):
        slow = []
        for stage in tasks.stages:
            if stage.tasks < 2 or stage.records <= 0 or stage.wall_seconds is None:
                continue
            others = (stage.run_seconds - stage.seconds_max) / (stage.tasks - 1)
            records = (stage.records - stage.records_max) / (stage.tasks - 1)
            if stage.records_max > even * max(1.0, records):
                continue
            slots = batch_time.slots(view, stage.tasks)
            without = max(others, (stage.run_seconds - stage.seconds_max + others) / slots)
            lost = max(0.0, min(stage.seconds_max, stage.wall_seconds) - without)
            slow.append(Slowest(stage, stage.seconds_max, others, lost, batch.duration))
        if slow:
            found.append(max(slow, key=lambda each: each.lost))
    return found


class Share(NamedTuple):
    """What one executor did of all stages of the newest batches whose tasks are known."""

    executor: str
    cores: int
    tasks: int
    run_seconds: float
    records: int

    @property
    def task_seconds(self) -> float | None:
        """Mean run time of a task; None without one."""
        return self.run_seconds / self.tasks if self.tasks else None


@once
def executor_shares(view: QueryView) -> Sequence[Share]:
    """Of every active executor with cores, the busiest first; empty unless there are several.

    A stage of fewer tasks than executors cannot be spread over them, and is not counted.
    """
    cores = {each.executor_id: each.cores for each in view.cluster.executors if each.cores > 0}
    if len(cores) < 2:
        return []
    done = {name: [0, 0.0, 0] for name in cores}
    for _, tasks in batch_time.pairs(view):
        for stage in tasks.stages:
            if stage.tasks < len(cores):
                continue
            for name, share in stage.executors.items():
                if name in done:
                    done[name][0] += share.tasks
                    done[name][1] += share.run_seconds
                    done[name][2] += share.records
    shares = [
        Share(name, cores[name], int(tasks), seconds, int(records)) for name, (tasks, seconds, records) in done.items()
    ]
    return sorted(shares, key=lambda share: -share.run_seconds / share.cores)
