"""How long a source makes a query wait, in its driver and in its tasks, and how long it makes ledgerops wait."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import NamedTuple

from ledgerops.diagnosis import batch_time
from ledgerops.model.records import Progress, StageSummary, TaskSummary
from ledgerops.signals.baseline import MIN_USUAL_BATCHES, RECENT_BATCHES
from ledgerops.signals.memo import once
from ledgerops.signals.query_view import QueryView

PHASES = ("latest_offset", "get_batch")
MIN_SECONDS = 0.5  # a broker in another region answers the two or three questions of a batch in less
MIN_TIMES_USUAL = 3.0  # a loaded machine makes everything slower, but not this part alone by so much
MIN_ANSWER_SECONDS = 0.15  # of an answer to ledgerops itself; within a region it takes hundredths of a second
MIN_ANSWER_RATIO = 5.0  # over the usual: the process that asks is small, and also slow on a busy machine
NEWEST_SAMPLES = 3  # newest answers of the broker
MIN_FORMER_SAMPLES = 15  # newest answers that do not count as usual: the slowness may have begun among them
MAX_AGE_SECONDS = 20.0  # of the newest answer


class Wait(NamedTuple):
    """Median seconds now and usually."""

    now: float
    usual: float

    @property
    def long(self) -> bool:
        """Whether it is long by itself and against the usual."""
        return self.now >= max(MIN_SECONDS, MIN_TIMES_USUAL * self.usual)


def driver_seconds(batch: Progress) -> float:
    """Seconds that the driver spends asking the source for its offsets in a batch."""
    return sum(batch.phases.get(phase, 0.0) for phase in PHASES)


@once
def usual_batches(view: QueryView) -> Sequence[Progress]:
    """The batches to compare with: those that were in time; where these are too few, the quicker half of the older."""
    in_time = view.baseline.usual
    if in_time:
        return in_time
    older = [batch for batch in view.baseline.steady[: -RECENT_BATCHES - 1] if batch.rows > 0]
    quicker = sorted(older, key=lambda batch: batch.duration)[: (len(older) + 1) // 2]
    return quicker if len(quicker) >= MIN_USUAL_BATCHES else []


def longer_wait_for_rows(view: QueryView, now: Sequence[float]) -> Wait | None:
    """Seconds a batch that the reading tasks wait, now and usually; None unless that is much longer than usual."""
    before = [
        seconds
        for batch in usual_batches(view)
        if (tasks := view.history.tasks_of(batch)) is not None and (seconds := _wait(tasks)) is not None
    ]
    if not now or not before:
        return None
    wait = Wait(median(now), median(before))
    return wait if wait.long else None


def task_waits(view: QueryView, latest: Sequence[Progress], seconded: bool) -> dict[int, float]:
    """Seconds that the reading tasks of a batch wait, by batch id, where they are known and mostly wait.

    Tasks that both read and write wait for either; later stages, or other evidence (`seconded`), show that it is not
    the sink.
    """
    found = {}
    for batch in latest:
        tasks = view.history.tasks_of(batch)
        if tasks is None or not tasks.stages or (tasks.stages[-1] is _first(tasks) and not seconded):
            continue
        wait = _wait(tasks)
        if wait is not None and _idle(tasks) >= 1 - batch_time.MAX_WAITING_CPU_SHARE:
            found[batch.batch_id] = wait
    return found


def _first(tasks: TaskSummary) -> StageSummary | None:
    """The stage that reads the source."""
    return next((stage for stage in tasks.stages if not stage.reads_shuffle and stage.records > 0), None)


def _idle(tasks: TaskSummary) -> float:
    """The share of the reading tasks' time in which they did not compute."""
    reading = _first(tasks)
    if reading is None or reading.run_seconds <= 0:
        return 0.0
    busy = reading.cpu_seconds + reading.gc_seconds + (tasks.python_seconds or 0.0)
    return max(0.0, 1 - busy / reading.run_seconds)


def _wait(tasks: TaskSummary) -> float | None:
    """Seconds of wall time in which the reading stage did not compute."""
    reading = _first(tasks)
    return None if reading is None or not reading.wall_seconds else reading.wall_seconds * _idle(tasks)


@once
def slow_answers(view: QueryView) -> Wait | None:
    """How long the broker takes to answer ledgerops itself; None unless that is far longer than usual."""
    answers = [heads for heads in view.history.heads if heads.seconds is not None and heads.at <= view.now]
    newest, former = answers[-NEWEST_SAMPLES:], answers[:-MIN_FORMER_SAMPLES]
    if len(newest) < NEWEST_SAMPLES or len(former) < NEWEST_SAMPLES or view.now - newest[-1].at > MAX_AGE_SECONDS:
        return None
    wait = Wait(median(each.seconds or 0.0 for each in newest), median(each.seconds or 0.0 for each in former))
    return wait if wait.now >= max(MIN_ANSWER_SECONDS, MIN_ANSWER_RATIO * wait.usual) else None
