"""What is remembered of one query: recent batches whole, older ones as a thin trend. Bounded in size.

The history belongs to the query's name, so it goes on over restarts; a new run id begins a new run in it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from ledgerops.model.advance import Advance, advanced
from ledgerops.model.head_table import HeadTable, note_heads, offsets_read_at
from ledgerops.model.records import (
    BatchFiles,
    DriverCode,
    Heads,
    Plan,
    Progress,
    Running,
    Stacks,
    TableCommit,
    Tables,
    TaskSummary,
)
from ledgerops.model.stops import stopped_with_application

MAX_BATCHES = 200  # no rule reads more
FULL_BATCHES = 30  # newest batches that keep the state stores' custom metrics, the bulk of a record
MAX_TASK_SUMMARIES = 60
MAX_BATCH_FILES = 60
MAX_CLOCK_STEP_SECONDS = 5.0  # by which the machine's clock may be set before the history starts over
NOTICED_SECONDS = 15.0  # in which a step of the clock is noticed: the worker's longest sleep, and one event's work
MAX_COMMITS = 200  # to the sink's table, as many as batches
MAX_HEADS = 60  # points of the (time, head offset) table, as many as kafka-lag-exporter keeps
MAX_FORMER_RUNS = 20  # run ids
MAX_ENDS = 20  # of earlier runs
MAX_WAITED = 20
PAUSE_SECONDS = 0.06  # between two batches, below which the second did not wait for anything
PAUSE_SHARE = 0.03  # of the first of them, the same: after long batches Spark itself pauses on a busy machine
MAX_PAUSE_SECONDS = 0.6  # the same, however long they are: 0.57 s was seen after batches of 9 to 43 s
CONSEQUENCE_SECONDS = 60.0  # that an application may take to stop after one of its queries failed
STARTING_SECONDS = 10.0  # that an application may go on to start its queries after the first of them failed
TREND_SECONDS = 10.0  # covered by one point of the trend
TREND_POINTS = 360  # an hour


class TrendPoint(NamedTuple):
    """The state at the end of a stretch of TREND_SECONDS, with the rows and batch time that fell into it."""

    at: float
    rows: int
    batches: int
    batch_seconds: float
    backlog: int | None
    watermark: float | None
    state_rows: int
    heads: int | None  # sum of the head offsets: its growth is the arrival


class ClockStep(NamedTuple):
    """The machine's clock was set by so many `seconds`, back where they are negative, to `at` (epoch seconds)."""

    at: float
    seconds: float

    def moved(self, instant: float) -> float:
        """What an instant is by the clock of now, unless it was read in the moment since the step was noticed."""
        if self.at - NOTICED_SECONDS <= instant <= self.at and not self.is_after(instant):
            return instant
        return min(instant + self.seconds, self.at)

    def is_after(self, instant: float) -> bool:
        """Whether an instant was read before the step: it is nearer to what the clock told then."""
        return (instant < self.at - self.seconds / 2) == (self.seconds > 0)


@dataclass(frozen=True, slots=True)
class Ended:
    """How a run ended: `error_class` and `exception` are None after a clean stop.

    An `unwatched` run may go on: only the watch of it has ended. A `lost` run vanished without a terminated event. A
    run that ended `with_application` has not failed: it was stopped, or is the consequence of another's failure. An
    end that is `unrecorded` is that of a driver after which another wrote the recording: `at` is the last sign of it.
    `application_error` is the exception or exit code that the application of a run ended with; None for others.
    """

    at: float
    run_id: str
    exception: str | None
    error_class: str | None
    unwatched: bool = False
    lost: bool = False
    with_application: bool = False
    unrecorded: bool = False
    application_error: str | None = None

    def stopped_by(self, other: Ended | None, histories: Iterable[History]) -> bool:
        """Whether this run ended with the application soon after another failed, whose exception stopped it. An
        application that started any of its queries in between, by their `histories`, went on after the failure, unless
        it was still starting one after the other."""
        if other is None or other.exception is None or not self.with_application:
            return False
        if any(other.at + STARTING_SECONDS < (each.started_at or 0.0) <= self.at for each in histories):
            return False
        return 0 <= self.at - other.at <= CONSEQUENCE_SECONDS


class History:
    """Not thread-safe: one worker owns it."""

    def __init__(self, query: str) -> None:
        self.query = query
        self.query_id: str | None = None
        self.run_id: str | None = None
        self.former: deque[str] = deque(maxlen=MAX_FORMER_RUNS)  # ids of earlier runs
        self.batches: deque[Progress] = deque(maxlen=MAX_BATCHES)
        self.waited: deque[float] = deque(maxlen=MAX_WAITED)  # starts of the newest batches of the run that had a pause
        self.trend: deque[TrendPoint] = deque(maxlen=TREND_POINTS)
        self.tasks: deque[TaskSummary] = deque(maxlen=MAX_TASK_SUMMARIES)
        self.files: deque[BatchFiles] = deque(maxlen=MAX_BATCH_FILES)
        self.table_samples: deque[Tables] = deque(maxlen=MAX_TASK_SUMMARIES)
        self.driver_code: DriverCode | None = None  # the newest sample
        self.stacks: tuple[Stacks, ...] = ()  # the newest two looks at a batch that does not end
        self.commits: deque[TableCommit] = deque(maxlen=MAX_COMMITS)  # of the query's own batches to its sink's table
        self.heads: deque[Heads] = deque(maxlen=MAX_HEADS)
        self.head_times: HeadTable = {}  # from the batches and from the collector that reads the source itself
        self.earliest_times: HeadTable = {}  # of the oldest offset that the source still has
        self.plan: Plan | None = None
        self.running: Running | None = None  # None as soon as something newer was heard
        self.interrupted: Running | None = None  # the batch that was running when the run ended: it never finished
        self.watermark: Advance | None = None  # of the current run
        self.watermark_stood = 0.0  # longest seconds between two of its rises in earlier runs with this checkpoint
        self.newest_event: Advance | None = None  # the newest event time of the current run
        self.started_at: float | None = None  # of the current run
        # id of the first batch of the current run, or of one before all that were reported
        self.first_batch: int | None = None
        self.ended: Ended | None = None  # None while a run is on
        self.ends: deque[Ended] = deque(maxlen=MAX_ENDS)  # of all remembered runs, oldest first
        self.last_seen: float | None = None  # the last event: start, progress or idle
        self.told_at: float | None = None  # when the newest progress or idle event came
        self.told_late = 0.0  # seconds that it came after what it tells
        self.last_progress: float | None = None  # when the last batch ended
        self.idle_since: float | None = None
        self.stepped: ClockStep | None = None  # until the next batch
        self.restarts = 0
        self.failures: dict[str, int] = {}  # error class -> count
        self.derived: dict[str, Any] = {}  # what earlier looks computed of the run's batches; bounded by who does

    @property
    def last(self) -> Progress | None:
        """The newest remembered batch, of any run; None before the first."""
        return self.batches[-1] if self.batches else None

    @property
    def tables(self) -> Tables | None:
        """The newest sample of the query's tables; None before the first."""
        return self.table_samples[-1] if self.table_samples else None

    @property
    def run(self) -> Sequence[Progress]:
        """The remembered batches of the current run, oldest first."""
        if self.batches and self.batches[0].run_id == self.run_id:
            return self.batches
        return [batch for batch in self.batches if batch.run_id == self.run_id]

    def copy(self) -> History:
        """One that does not change when this one does; the records in it are shared."""
        other = copy(self)
        other.batches, other.waited, other.trend = self.batches.copy(), self.waited.copy(), self.trend.copy()
        other.tasks, other.files, other.heads = self.tasks.copy(), self.files.copy(), self.heads.copy()
        other.derived = {}
        other.commits, other.table_samples = self.commits.copy(), self.table_samples.copy()
        other.failures, other.former, other.ends = dict(self.failures), self.former.copy(), self.ends.copy()
        return other

    def without_times(self, step: ClockStep) -> History:
        """The same runs without what happened in them, for a machine whose clock was set."""
        other = History(self.query)
        other.query_id, other.run_id, other.former, other.plan = self.query_id, self.run_id, self.former, self.plan
        other.first_batch, other.restarts, other.failures = self.first_batch, self.restarts, self.failures
        other.started_at = None if self.started_at is None else step.moved(self.started_at)
        other.last_seen = None if self.last_seen is None else step.moved(self.last_seen)
        other.ends.extend(replace(each, at=step.moved(each.at)) for each in self.ends)
        other.ended = None if self.ended is None else replace(self.ended, at=step.moved(self.ended.at))
        other.watermark_stood, other.stepped = self.watermark_stood, step
        return other

    def start(self, at: float, query_id: str, run_id: str) -> None:
        """A run began at `at` (epoch seconds). A new run id counts as a restart; ignored when this run is on, or is
        over for good: who lists the active queries may have seen it just before its end."""
        if run_id == self.run_id and (self.ended is None or not (self.ended.lost or self.ended.unwatched)):
            return
        if self.run_id is not None and run_id != self.run_id:
            self.restarts += 1
            self.former.append(self.run_id)
        if query_id != self.query_id:  # of another checkpoint: its sink may be another folder or table
            self.commits.clear()
            self.watermark_stood = 0.0
        elif self.watermark is not None:
            self.watermark_stood = max(self.watermark_stood, self.watermark.longest)
        self.query_id, self.run_id = query_id, run_id
        self.started_at = self.last_seen = at
        self.ended = self.running = self.interrupted = self.idle_since = self.first_batch = None
        self.watermark = self.newest_event = None
        self.waited.clear()

    def add(self, progress: Progress) -> bool:
        """Remembers a batch. False when it was known: a batch counts once for each (run id, batch id). A batch that is
        reported after its run's end, or after the next run's start, does not restart its run. One that began by another
        clock counts, but its times say nothing: it is not remembered."""
        stepped, self.stepped = self.stepped, None
        if stepped is not None and progress.run_id == self.run_id and stepped.is_after(progress.started):
            self.running = self.idle_since = None
            return True
        last = self.last
        if self.ended is not None and self.ended.lost and progress.run_id == self.run_id:
            self.ended = None  # it was not lost after all
        late = self.is_late(progress.run_id, progress.started)  # Spark reports a start at once, a batch in its turn
        if late and last is not None and last.run_id == self.run_id:
            return False  # out of order
        watched = self.run_id is not None  # a run before this one, or its start
        if progress.run_id != self.run_id and not late:
            self.start(progress.started, progress.query_id, progress.run_id)
        self.last_seen = max(self.last_seen or 0.0, progress.ended)
        self.running = self.idle_since = None
        if last is not None and last.run_id == progress.run_id and last.batch_id >= progress.batch_id:
            return False
        if self.first_batch is None and not late:
            self.first_batch = progress.batch_id if watched or progress.batch_id == 0 else progress.batch_id - 1
        self.last_progress = progress.ended
        for source, before in zip(progress.sources, last.sources if last is not None else (), strict=False):
            if source.start == before.end:  # one object for both: a topic may have hundreds of partitions
                source.start = before.end
        self.batches.append(progress)
        if last is not None and last.run_id == self.run_id:
            own = max(PAUSE_SECONDS, min(PAUSE_SHARE * last.duration, MAX_PAUSE_SECONDS))  # of Spark, without a wait
            if progress.started - last.ended > own:
                self.waited.append(progress.started)
        if not late:
            self.watermark = advanced(self.watermark, progress.watermark, progress.started)
            self.newest_event = advanced(self.newest_event, progress.event_time_max, progress.started)
        for source in progress.sources:
            note_heads(self.head_times, offsets_read_at(progress), source.latest.items())
        if len(self.batches) > FULL_BATCHES:
            for operator in self.batches[-FULL_BATCHES - 1].operators:
                operator.custom, operator.snapshot_versions = {}, {}
        self._add_to_trend(progress)
        return True

    def is_late(self, run_id: str, at: float) -> bool:
        """Whether what an earlier run did at `at` was before the start of the present one."""
        return run_id != self.run_id and run_id in self.former and at <= (self.started_at or 0.0)

    def idle(self, at: float) -> None:
        """The query had nothing to read at `at` (epoch seconds): what its newest batch read up to still are the heads,
        unless the collector has seen later ones, of a transaction that Spark does not show yet."""
        self.last_seen = max(self.last_seen or 0.0, at)
        self.idle_since = at if self.idle_since is None else self.idle_since
        self.running = None
        if self.last is None or (self.plan is not None and self.plan.waits_for_more):
            return
        for source in self.last.sources:
            if source.latest == source.end:
                known = ((each, head) for each, head in source.latest.items() if each in self.head_times)
                note_heads(self.head_times, at, [(each, h) for each, h in known if self.head_times[each][0][-1] == h])

    def end(self, at: float, run_id: str, exception: str | None, error_class: str | None, **marks: Any) -> None:
        """The run ended at `at` (epoch seconds), with the marks of `Ended`. The end of the run before may be heard of
        after the start of this one, which Spark tells at once; a second one, or that of an unknown run, is ignored."""
        known = [each for each in self.ends if each.run_id == run_id and not (each.lost or each.unwatched)]
        late = run_id in self.former and not known
        if not late and (self.run_id not in (None, run_id) or self.ended is not None):
            return
        if exception is not None and (marks.get("with_application") or stopped_with_application(exception)):
            exception, error_class, marks = None, None, {**marks, "with_application": True}
        if late:
            self.ends.append(Ended(min(at, self.started_at or at), run_id, exception, error_class, **marks))
        else:
            self.run_id = run_id
            self.ended = Ended(at, run_id, exception, error_class, **marks)
            self.ends.append(self.ended)
            self.interrupted, self.running = self.running, None
        if exception is not None:
            kind = error_class or "unclassified"
            self.failures[kind] = self.failures.get(kind, 0) + 1

    def set_running(self, running: Running) -> None:
        """Keeps the batch that is running; ignored when it is of another run or the run has ended."""
        if running.run_id == self.run_id and self.ended is None:
            earlier, moved, pace = self.running, None, 0.0
            if running.tasks is not None:
                moved, pace = running.at, 0.0 if earlier is None else earlier.pace
                if earlier and earlier.tasks_done == running.tasks_done and (running.jobs or 0) <= (earlier.jobs or 0):
                    moved = earlier.moved
                elif earlier and earlier.moved is not None:
                    pace = max(pace, running.at - earlier.moved)
            self.running = replace(running, moved=moved, pace=pace)

    def add_heads(self, heads: Heads) -> None:
        """A sample of the source itself; one that is older than the newest is ignored."""
        if self.heads and heads.at <= self.heads[-1].at:
            return
        self.heads.append(heads)
        note_heads(self.head_times, heads.at, heads.latest.items())
        note_heads(self.earliest_times, heads.at, heads.earliest.items())

    def note_told(self, at: float, happened: float) -> None:
        """Notes when Spark told of the end of a batch or of an idle moment: a slow listener delays all others."""
        self.told_at, self.told_late = at, at - happened

    def add_tables(self, tables: Tables) -> Sequence[TableCommit]:
        """Keeps a sample of the query's tables, and returns the commits in it that are new: each counts once. What a
        former run wrote last may be heard of after the start of this one: of another checkpoint it is not kept."""
        new = [commit for commit in tables.commits if commit not in self.commits]
        if tables.run_id == self.run_id or any(
            (batch.run_id, batch.query_id) == (tables.run_id, self.query_id) for batch in self.batches
        ):
            self.commits.extend(new)
        if self.tables is None or tables.at > self.tables.at:
            self.table_samples.append(tables)
        return new

    def tasks_of(self, progress: Progress) -> TaskSummary | None:
        """The stages of a batch, by its run id and batch id; None when they were not read or are forgotten."""
        for tasks in reversed(self.tasks):
            if tasks.batch_id == progress.batch_id and tasks.run_id == progress.run_id:
                return tasks
        return None

    def _add_to_trend(self, progress: Progress) -> None:
        at = progress.ended - progress.ended % TREND_SECONDS + TREND_SECONDS
        rows, batches, seconds = progress.rows, 1, progress.duration
        if self.trend and self.trend[-1].at == at:
            point = self.trend.pop()
            rows, batches, seconds = rows + point.rows, batches + point.batches, seconds + point.batch_seconds
        heads = [sum(source.latest.values()) for source in progress.sources if source.latest]
        self.trend.append(
            TrendPoint(
                at=at, rows=rows, batches=batches, batch_seconds=seconds, backlog=backlog(progress),
                watermark=progress.watermark, state_rows=sum(operator.rows for operator in progress.operators),
                heads=sum(heads) if heads else None,
            )
        )  # fmt: skip


def backlog(progress: Progress) -> int | None:
    """Offsets not read yet over all partitions; None when no source says how far its head is."""
    lefts = [source.left for source in progress.sources if source.latest]
    return sum(lefts) if lefts else None
