"""How long the sink makes a query wait: in the driver while no task runs, or in the tasks that write."""

from __future__ import annotations

from statistics import median
from typing import NamedTuple

from ledgerops.diagnosis import batch_time, starvation
from ledgerops.diagnosis.cpu_contention import slots_taken
from ledgerops.diagnosis.criteria import WORTH_SHARE
from ledgerops.diagnosis.harm import harm
from ledgerops.signals.query_view import QueryView

MIN_GROWTH_SECONDS = 1.0  # over the usual; in the median a machine's hiccups stay below it
MIN_TOGETHER_SHARE = 0.6  # of a stage's wall time in which its average task runs, when all wait for the same thing


def blocks(view: QueryView, outside: batch_time.Outside) -> bool:
    """Whether that time is the sink's: most of the batch, or a good part of it that was not there before; and not the
    wait of stages for cores of a busy machine.

    What passes after the last task has ended is the sink's in any case.
    """
    if outside.after >= (batch_time.MIN_MAIN_SHARE if harm(view) is None else WORTH_SHARE) * outside.duration:
        return True
    usual = batch_time.usually_outside(view)
    more = outside.seconds - (usual.seconds if usual is not None else outside.seconds)
    if starvation.machine_busy(view) and not view.baseline.usual and not starvation.keeps_itself_busy(view):
        typical = any(batch.rows > 0 for batch in view.baseline.settled)  # a first batch loads and compiles, slowly
        alone = typical and outside.seconds >= starvation.MIN_ALONE_RATIO * (outside.duration - outside.seconds)
        return alone and not slots_taken(view) and not starvation.crowded(view)
    main = outside.share >= batch_time.MIN_MAIN_SHARE
    grown = more >= max(MIN_GROWTH_SECONDS, batch_time.MIN_PART_SHARE * outside.duration)
    return (main or grown) and not starvation.starved(view) and not slots_taken(view)


class Waiting(NamedTuple):
    """The stage that writes, when its tasks mostly wait: neither CPU, nor garbage collection, nor Python."""

    stage: str
    seconds: float  # wall time of the stage
    cpu_share: float
    duration: float  # of the batch

    @property
    def is_most(self) -> bool:
        """Whether the stage hardly computes, and takes most of the batch."""
        return (
            self.cpu_share < batch_time.MAX_WAITING_CPU_SHARE
            and self.seconds >= batch_time.MIN_MAIN_SHARE * self.duration
        )


def waiting_stage(view: QueryView) -> Waiting | None:
    """The last stage of a batch is the one that writes."""
    return _waiting(view, batch_time.pairs(view))


def _waiting(view: QueryView, known: batch_time.Pairs) -> Waiting | None:
    found = []
    for batch, tasks in known:
        stage = tasks.stages[-1]
        busy = stage.cpu_seconds + stage.gc_seconds + (tasks.python_seconds or 0.0)
        wall = stage.wall_seconds
        if wall is None or stage.run_seconds <= 0:
            continue
        if stage.run_seconds / batch_time.slots(view, stage.tasks) < MIN_TOGETHER_SHARE * wall:
            continue  # one task is what the others wait for
        found.append(Waiting(f"stage {stage.stage_id}", wall, min(1.0, busy / stage.run_seconds), batch.duration))
    if len(found) < batch_time.needed(view):
        return None
    return sorted(found, key=lambda each: each.cpu_share)[len(found) // 2]


def waits(view: QueryView, waiting: Waiting) -> bool:
    """Whether the writing tasks wait for the sink: most of the batch, more than they used to, on a machine with CPU.

    Tasks that read a Python source or run Python wait for their worker in just the same way; so the past decides.
    """
    if starvation.machine_busy(view):
        return False
    lost = view.baseline.slowdown
    if lost is None:
        return _waits_from_birth(view, waiting)
    if lost.factor < batch_time.MIN_TIMES_USUAL:
        return False
    usual = _waiting(view, batch_time.usual_pairs(view))
    if usual is not None and usual.cpu_share < batch_time.MAX_WAITING_CPU_SHARE:
        return False  # they always wait, and nothing says for what
    return waiting.is_most


def _waits_from_birth(view: QueryView, waiting: Waiting) -> bool:
    """Without a past the stage must do nothing but write: it reads a shuffle and not the source, and neither state nor
    shuffle explains its waiting."""
    known = batch_time.pairs(view)
    if not waiting.is_most or not all(tasks.stages[-1].reads_shuffle for _, tasks in known):
        return False
    state = median(
        batch.state_seconds + sum(stage.shuffle_seconds or 0.0 for stage in tasks.stages) for batch, tasks in known
    )
    return state < batch_time.MAX_WAITING_CPU_SHARE * median(tasks.stages[-1].run_seconds for _, tasks in known)
