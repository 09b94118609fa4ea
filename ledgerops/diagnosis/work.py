"""Where the time of a batch goes: what Spark's tasks explain, what they do not, and what uneven tasks waste."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import NamedTuple

from ledgerops.diagnosis import strain
from ledgerops.records import Progress, StageSummary, TaskSummary
from ledgerops.view import WINDOW, View

PAIRS = 5  # newest batches whose tasks are known
ENOUGH = 2  # of them, to say anything
WAITS = 0.3  # tasks that compute less than this share of their time wait
MORE_THAN_USUAL = 2.0  # batch time against the query's own past, at equal rows
MOSTLY = 0.5  # share of a batch from which one thing is what the batch does
TRUNCATED = 8  # stages of a batch: of more, only the newest were read, and the others' time is unknown
BUSY = 0.85  # of all cores
BUSY_LOOKS = 3  # at one look every 10 s
UNEVEN = 1.5  # the slowest task takes the stage so much longer than an even split would


@strain.once
def pairs(view: View) -> Sequence[tuple[Progress, TaskSummary]]:
    """The newest settled batches with their tasks, newest first."""
    found = []
    for batch in reversed(view.settled[-2 * PAIRS :]):
        tasks = view.history.tasks_of(batch)
        if tasks is not None and tasks.stages:
            found.append((batch, tasks))
        if len(found) == PAIRS:
            break
    return found


def slots(view: View, tasks: int) -> int:
    """How many tasks of a stage can run at once: its tasks, or the cores if they are known to be fewer."""
    cores = 0
    if view.hosts:
        cores = sum(executor.cores for executor in view.hosts[-1].executors if executor.active)
    return max(1, min(tasks, cores)) if cores else max(1, tasks)


def stage_seconds(tasks: TaskSummary) -> tuple[float, float] | None:
    """Wall time in which at least one stage was at work, and when the last ended; None when not all is known."""
    spans = [(stage.started, stage.ended) for stage in tasks.stages]
    if not spans or len(spans) >= TRUNCATED:
        return None
    total, until = 0.0, float("-inf")
    for started, ended in sorted((s, e) for s, e in spans if s is not None and e is not None):
        total += max(0.0, ended - max(started, until))
        until = max(until, ended)
    return (total, until) if all(s is not None and e is not None for s, e in spans) else None


class Outside(NamedTuple):
    """Medians over batches: seconds of `add_batch` in which no task ran, how many of them after the last task, and
    the batch duration."""

    seconds: float
    after: float
    duration: float
    batches: int

    @property
    def share(self) -> float:
        return self.seconds / self.duration if self.duration > 0 else 0.0


@strain.once
def outside_tasks(view: View) -> Outside | None:
    """None when the tasks of too few batches are known."""
    found = []
    for batch, tasks in pairs(view):
        inside = stage_seconds(tasks)
        if inside is None or "add_batch" not in batch.phases:
            continue
        seconds, last = inside
        outside = max(0.0, batch.phases["add_batch"] - seconds)
        after = batch.ended - batch.phases.get("commit_offsets", 0.0) - last
        found.append((outside, min(max(0.0, after), outside), batch.duration))
    if len(found) < ENOUGH:
        return None
    seconds, after, duration = (median(each) for each in zip(*found, strict=True))
    return Outside(seconds, after, duration, len(found))


def machine_busy(view: View) -> bool:
    """Whether there is hardly any CPU left for the query: stages then wait for cores, whatever the sink does.

    The machine's own figure does not tell it on a large host of which the driver may use only a part; then it shows
    in as many other queries as there are cores outlasting their interval, too.
    """
    looks = [host.cpu_busy_ratio for host in list(view.hosts)[-BUSY_LOOKS:] if host.cpu_busy_ratio is not None]
    return (bool(looks) and median(looks) >= BUSY) or _crowded(view)


def _crowded(view: View) -> bool:
    cores = sum(executor.cores for executor in view.hosts[-1].executors if executor.active) if view.hosts else 0
    fresh = view.now - WINDOW
    late = [
        other
        for other in view.others
        if (other.ended is None or other.ended.at >= fresh)
        and other.idle_since is None
        and other.last is not None
        and other.last.ended >= fresh
        and other.plan is not None
        and other.plan.trigger_interval
        and other.last.duration > other.plan.trigger_interval
    ]
    return 0 < cores <= len(late)


def sink_blocks(view: View, outside: Outside) -> bool:
    """Whether that time is the sink's: most of the batch, and not the wait of stages for cores of a busy machine.

    What passes after the last task has ended is the sink's in any case.
    """
    if outside.after >= MOSTLY * outside.duration:
        return True
    return outside.share >= MOSTLY and not machine_busy(view)


class Waiting(NamedTuple):
    """The stage that writes, when its tasks mostly wait: neither CPU, nor garbage collection, nor Python."""

    stage: str
    seconds: float  # wall time of the stage
    cpu_share: float
    duration: float


def waiting_sink_stage(view: View) -> Waiting | None:
    """The last stage of a batch is the one that writes."""
    found = []
    for batch, tasks in pairs(view):
        stage = tasks.stages[-1]
        busy = stage.cpu_seconds + stage.gc_seconds + (tasks.python_seconds or 0.0)
        wall = stage.wall_seconds
        if wall is None or stage.run_seconds <= 0:
            continue
        found.append(Waiting(f"stage {stage.stage_id}", wall, min(1.0, busy / stage.run_seconds), batch.duration))
    if len(found) < ENOUGH:
        return None
    return sorted(found, key=lambda each: each.cpu_share)[len(found) // 2]


def sink_waits(view: View, waiting: Waiting) -> bool:
    """Whether the writing tasks wait for the sink: most of the batch, more than they used to, on a machine with CPU.

    Tasks that read a Python source or run Python wait for their worker in just the same way; so the past decides.
    """
    lost = strain.slowdown(view)
    if lost is None or lost.factor < MORE_THAN_USUAL or machine_busy(view):
        return False
    return waiting.cpu_share < WAITS and waiting.seconds >= MOSTLY * waiting.duration


class Uneven(NamedTuple):
    """A stage whose largest task holds `share` of the records, which makes the stage `factor` times as long."""

    stage: StageSummary
    share: float
    factor: float
    slots: int
    batches: int


MIN_RECORDS = 200  # fewer records fall on few tasks unevenly by chance


def uneven_stage(view: View, shuffle: bool) -> Uneven | None:
    """The stage (that reads a shuffle, or that reads the source) with the most uneven records, by medians."""
    by_place: dict[int, list[Uneven]] = {}
    for _, tasks in pairs(view):
        several = [stage for stage in tasks.stages if stage.tasks > 1 and stage.reads_shuffle is shuffle]
        for place, stage in enumerate(several):
            if stage.records >= MIN_RECORDS:
                width = slots(view, stage.tasks)
                share = min(1.0, stage.records_max / stage.records)
                by_place.setdefault(place, []).append(Uneven(stage, share, width * share, width, 0))
    worst = [
        sorted(found, key=lambda each: each.factor)[len(found) // 2]._replace(batches=len(found))
        for found in by_place.values()
        if len(found) >= ENOUGH
    ]
    return max(worst, key=lambda each: each.factor, default=None)


class Waste(NamedTuple):
    """Time of a batch that goes into something other than the work on its rows."""

    what: str
    seconds: float
    duration: float

    @property
    def factor(self) -> float:
        """How much faster a batch would be without it."""
        return self.duration / max(self.duration - self.seconds, 0.05 * self.duration)


def wasted(view: View) -> Waste | None:
    """The larger of: time outside tasks or waiting in the writing stage, and time that uneven tasks cost."""
    found = []
    outside = outside_tasks(view)
    if outside is not None and sink_blocks(view, outside):
        found.append(Waste("the sink, outside Spark's tasks", outside.seconds, outside.duration))
    waiting = waiting_sink_stage(view)
    if waiting is not None and sink_waits(view, waiting):
        found.append(Waste("waiting in the stage that writes", waiting.seconds, waiting.duration))
    uneven = uneven_stage(view, shuffle=True)
    if uneven is not None and uneven.factor >= UNEVEN and uneven.stage.wall_seconds is not None:
        ideal = uneven.stage.run_seconds / uneven.slots
        lost = max(0.0, uneven.stage.wall_seconds - ideal)
        newest = view.steady[-strain.RECENT :] or view.batches[-1:]
        found.append(Waste("one task that has most of the rows", lost, median(batch.duration for batch in newest)))
    return max(found, key=lambda each: each.seconds, default=None)
