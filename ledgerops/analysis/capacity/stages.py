"""How the time that a batch spends in Spark's tasks changes with the cores, and what bounds it.

A stage of n tasks on c cores takes at least as long as its longest task, and at least its tasks' time over min(c, n)
(Graham, "Bounds on multiprocessing timing anomalies", 1969). What it took beyond that (scheduling, cores lent to
others) stays as it was. A batch's time outside tasks does not change (Amdahl, 1967).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import NamedTuple

from ledgerops.analysis.capacity.fit import fit
from ledgerops.common.format import counted
from ledgerops.diagnosis.batch_parts import stage_time
from ledgerops.model.records import Progress, StageSummary, TaskSummary
from ledgerops.signals.query_view import QueryView

MIN_UNEVEN_RATIO = 1.5  # longest task over an even share: below it is chance
MIN_BATCHES, NEWEST_BATCHES = 2, 10  # with tasks: needed for any statement, and kept to vary their cores
MAX_CORES_FACTOR = 4.0  # times the current cores: beyond it contention for memory, disk and network is not known


class Limit(NamedTuple):
    """`what` is one of: source_limit, other_queries, other_processes, cpu_limit, fixed_overhead, source, sink, driver,
    cores, source_partitions, state_partitions, shuffle_partitions, hot_key, source_skew, straggler, unknown."""

    what: str
    detail: str

    @property
    def name(self) -> str:
        """In words."""
        return self.what.replace("_", " ").replace("cpu", "CPU")


@dataclass(frozen=True, slots=True)
class Stages:
    """The tasks of the newest batches: their stages, and the part of the fitted line that is theirs."""

    batches: tuple[TaskSummary, ...]  # newest first
    cores: int | None
    stateful: bool
    of_overhead: float  # share of the overhead that passes in tasks, 0 to 1
    of_slope: float  # and of what each row costs

    def factor(self, cores: int) -> float:
        """Time in tasks with so many cores, over that with the present ones; the median over the batches."""
        now = self.cores or cores
        ratios = []
        for each in self.batches:
            wall = sum(stage.wall_seconds or 0.0 for stage in each.stages)
            if wall > 0:
                ratios.append(sum(_seconds(stage, now, cores) for stage in each.stages) / wall)
        return median(ratios) if ratios else 1.0

    def bound(self, cores: int) -> Limit | None:
        """What bounds the stage that takes longest with so many cores, in most of the batches."""
        now = self.cores or cores
        found = []
        for each in self.batches:
            stages = [stage for stage in each.stages if stage.run_seconds > 0]
            if stages:
                found.append(self._bound(max(stages, key=lambda stage: _seconds(stage, now, cores)), cores))
        if not found:
            return None
        kinds = [bound.what for bound in found]
        usual = max(kinds, key=kinds.count)
        return next(bound for bound in found if bound.what == usual)

    def _bound(self, stage: StageSummary, cores: int) -> Limit:
        even = stage.run_seconds / min(cores, stage.tasks)
        tasks = counted(stage.tasks, "task")
        if stage.tasks > 1 and stage.seconds_max >= MIN_UNEVEN_RATIO * even:
            share = stage.records_max / stage.records if stage.records else 0.0
            if share * min(cores, stage.tasks) >= MIN_UNEVEN_RATIO:
                what = "hot_key" if stage.reads_shuffle else "source_skew"
                return Limit(what, f"one of {tasks} reads {share:.0%} of the rows of its stage")
            longest = f"{stage.seconds_max:.1f} s, an even share would be {even:.1f} s"
            return Limit("straggler", f"the longest of {tasks} takes {longest}")
        if stage.tasks <= cores:
            if not stage.reads_shuffle:
                return Limit("source_partitions", f"the source stage has {tasks}")
            if self.stateful:
                fixed = "fixed by the checkpoint (Spark 4.2 can change it)"
                return Limit("state_partitions", f"the state stage has {tasks}, {fixed}")
            return Limit("shuffle_partitions", f"the stage after the shuffle has {tasks}")
        return Limit("cores", f"{tasks} share {counted(cores, 'core')}")


def _seconds(stage: StageSummary, now: int, cores: int) -> float:
    """Wall time of a stage with `cores`, from what it took with `now`."""
    wall, tasks = stage.wall_seconds or 0.0, max(1, stage.tasks)
    least = max(stage.seconds_max, stage.run_seconds / min(now, tasks))
    then = max(stage.seconds_max, stage.run_seconds / min(cores, tasks))
    if least <= 0:
        return wall
    return wall - least + then if wall > least else wall * then / least


def stages_of(view: QueryView, batches: Sequence[Progress]) -> Stages | None:
    """None when the tasks of too few batches are known, or not those of all their stages. The line's parts that pass in
    tasks come from a line through the task time of these batches alone, where there are enough of them; else the tasks'
    share of a typical batch is taken for both."""
    known = [
        (batch, tasks, inside.seconds)
        for batch in batches
        if (tasks := view.history.tasks_of(batch)) is not None and (inside := stage_time(tasks)) is not None
    ]
    if len(known) < MIN_BATCHES:
        return None
    inside_line = fit([batch.rows for batch, _, _ in known], [inside for _, _, inside in known])
    whole_line = fit([batch.rows for batch, _, _ in known], [batch.duration for batch, _, _ in known])
    share = median(min(1.0, inside / batch.duration) if batch.duration > 0 else 0.0 for batch, _, inside in known)
    of_overhead = of_slope = share
    if not isinstance(inside_line, str) and not isinstance(whole_line, str):
        of_slope = min(1.0, inside_line.slope / whole_line.slope)
        if whole_line.overhead > 0:
            of_overhead = min(1.0, inside_line.overhead / whole_line.overhead)
    newest = tuple(tasks for _, tasks, _ in reversed(known[-NEWEST_BATCHES:]))
    return Stages(newest, view.cluster.cores, view.run.stateful, of_overhead, of_slope)
