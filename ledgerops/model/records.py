"""What was observed, one plain record each: our names, base units, no judgement.

Instants are seconds since the epoch (UTC), durations seconds, sizes bytes. `None` means that Spark did not say:
a value is never invented (no 0, no -1, no 1970). Nothing changes a record; those that are made for each batch are not
frozen, because frozen ones take three times as long to make.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, get_args

ObservationKind = Literal[
    "started", "progress", "idle", "terminated", "plan", "tasks", "files", "tables", "driver_code", "stacks", "offsets",
    "host", "observer", "batch_running",
]  # fmt: skip
KINDS: tuple[ObservationKind, ...] = get_args(ObservationKind)

MAX_COUNT = 2**63  # nothing that Spark or a source counts or times is beyond it
Partition = tuple[str, str]  # (topic, partition); a source without topics uses its own name
Offsets = Mapping[Partition, int]


@dataclass(frozen=True, slots=True)
class Observation:
    """One line of a recording: when it was seen, what it is, whose it is, and the data as received."""

    at: float
    kind: ObservationKind
    query: str | None
    data: Mapping[str, Any]


def unread(at: float) -> Observation:
    """What stands for a line that could not be read: who takes it in counts it as a bad record."""
    return Observation(at, "plan", None, {})


@dataclass(frozen=True, slots=True)
class Left:
    """What a query has not read yet of a source, as far as the source reports it."""

    rows: int | None = None
    files: int | None = None
    bytes: int | None = None
    seconds: float | None = None  # the age of the oldest record that was not read


NOTHING_REPORTED = Left()


class TablePosition(NamedTuple):
    """Where a query is in a table: the version (Delta) or snapshot (Iceberg) that it reads next or has begun to read.

    Versions are numbers that can be subtracted, snapshot ids are not. `file` is the last file of it that was read, -1
    for none; for Iceberg the next file. `initial`: still in the rows that were there before the query.
    """

    version: int
    file: int
    initial: bool


@dataclass(slots=True)
class SourceProgress:
    """One source's part in a batch. Offsets are empty where the source has no numbers that can be subtracted."""

    name: str  # topics, or the short class name; unique within the query
    description: str
    rows: int
    start: Offsets
    end: Offsets
    latest: Offsets
    metrics: Mapping[str, str]
    times_read: int = 1  # how often the batch read the same rows: Spark counts them each time, `rows` only once
    kind: str = "other"  # name of a SourceKind in `model.sources`
    known_form: bool = True  # whether its offsets are understood, or there are none
    table: TablePosition | None = None  # after the batch
    reported: Left = NOTHING_REPORTED  # what is left by the source's own metrics
    # summed once: rules read many batches, and a topic may have many partitions
    read: int = field(init=False, compare=False, repr=False)  # offsets from start to end
    left: int = field(init=False, compare=False, repr=False)  # offsets not read yet; none where it is not known

    def __post_init__(self) -> None:
        if self.start.keys() == self.end.keys():  # nearly always, and much quicker
            read = sum(self.end.values()) - sum(self.start.values())
        else:
            read = sum(end - self.start[each] for each, end in self.end.items() if each in self.start)
        if self.latest is self.end:
            left = 0
        else:
            left = sum(max(0, head - self.end[each]) for each, head in self.latest.items() if each in self.end)
        self.read, self.left = read, left

    @property
    def moved(self) -> bool:
        """Whether the batch went on in it."""
        return self.start != self.end


@dataclass(slots=True)
class StateOperator:
    """One state operator after a batch. Times are sums over tasks, not wall time."""

    name: str  # Spark's operator name, `-2` and so on for the second of a kind
    rows: int
    updated: int
    removed: int
    update_seconds: float
    removal_seconds: float
    commit_seconds: float
    memory_bytes: int
    dropped_rows: int  # by the watermark; a lower bound for aggregations (counted after partial aggregation)
    shuffle_partitions: int | None
    custom: Mapping[str, float]  # Spark's own names and units; metrics.state gives both
    snapshot_versions: Mapping[str, int]  # store instance -> last uploaded version; -1 = never
    stores: int | None = None  # of all partitions: a join of two streams has several for each

    @property
    def partitions(self) -> int | None:
        """Those that hold state: one where all rows meet, as without keys or in a limit, whatever the setting says."""
        return min((number for number in (self.shuffle_partitions, self.stores) if number), default=None)


@dataclass(slots=True)
class Progress:
    """One micro-batch."""

    query: str
    query_id: str
    run_id: str
    batch_id: int
    started: float
    duration: float  # the whole trigger
    rows: int
    phases: Mapping[str, float]  # seconds by phase; phases that did not run are absent
    sources: tuple[SourceProgress, ...]
    operators: tuple[StateOperator, ...]
    sink: str
    output_rows: int | None
    watermark: float | None
    event_time_min: float | None
    event_time_avg: float | None
    event_time_max: float | None
    observed: Mapping[str, Mapping[str, Any]]
    # real-time mode on Databricks: (kind, quantile) -> seconds of the records of the batch
    record_latencies: Mapping[tuple[str, ...], float] = field(default_factory=dict)
    sink_metrics: Mapping[str, str] = field(default_factory=dict)  # what the sink reports of the batch, as text

    @property
    def ended(self) -> float:
        """When the batch ended, in epoch seconds."""
        return self.started + self.duration

    @property
    def adding_since(self) -> float:
        """When `addBatch` began, in epoch seconds; when it would have ended where its time is not known."""
        return self.ended - self.phases.get("commit_offsets", 0.0) - self.phases.get("add_batch", 0.0)

    @property
    def state_seconds(self) -> float:
        """Task seconds of all stateful operators: reading and changing, removing, saving."""
        return sum(each.update_seconds + each.removal_seconds + each.commit_seconds for each in self.operators)


@dataclass(frozen=True, slots=True)
class StageSummary:
    """One stage of one batch: how its tasks shared the work, by the attempts that ended well. `records` are the rows
    that a task read (input or shuffle), `seconds` its run time."""

    stage_id: int
    name: str
    tasks: int
    failed_tasks: int
    started: float | None
    ended: float | None
    run_seconds: float  # sum over tasks
    cpu_seconds: float
    gc_seconds: float
    seconds_median: float
    seconds_max: float
    records: int
    records_median: float
    records_max: float
    reads_shuffle: bool
    input_bytes: int
    shuffle_read_bytes: int
    shuffle_write_bytes: int
    spill_bytes: int
    executors: Mapping[str, ExecutorShare]  # by executor id
    records_score: float | None = None  # FLIP-418 score of the tasks' records, where every task was read
    seconds_score: float | None = None
    slowest_task: int | None = None  # index of the partition
    shuffle_seconds: float | None = None  # waiting for shuffle blocks and writing them, summed over tasks
    failed_seconds: float = 0.0  # of the attempts that failed, each from its launch to its end
    failure: str | None = None  # the exception of the newest of these
    submitted: float | None = None  # when its tasks could have begun, had there been a slot
    slowest_wrote: int | None = None  # records, to a sink or a shuffle

    @property
    def wall_seconds(self) -> float | None:
        """Seconds from the stage's start to its end, never negative; None when either is unknown."""
        if self.started is None or self.ended is None:
            return None
        return max(0.0, self.ended - self.started)


@dataclass(frozen=True, slots=True)
class ExecutorShare:
    """What one executor did in a stage."""

    tasks: int
    run_seconds: float


@dataclass(frozen=True, slots=True)
class FailedStatement:
    """A SQL execution of a batch that ended with an error and that the batch survived: `foreachBatch` caught it."""

    started: float
    ended: float
    error: str  # "" of all but the longest of a batch


@dataclass(frozen=True, slots=True)
class TaskSummary:
    """The stages of one batch, in the order in which they ran, without those of `failed` statements."""

    run_id: str
    batch_id: int
    stages: tuple[StageSummary, ...]
    python_seconds: float | None = None  # time in Python workers, summed over tasks, where Spark reports it
    whole: bool | None = None  # whether these are all that ran; None in recordings that do not tell
    failed: tuple[FailedStatement, ...] = ()

    @property
    def run_seconds(self) -> float:
        """Time of all tasks, in seconds."""
        return sum(stage.run_seconds for stage in self.stages)

    @property
    def cpu_seconds(self) -> float:
        """CPU time of all tasks, in seconds."""
        return sum(stage.cpu_seconds for stage in self.stages)

    @property
    def gc_seconds(self) -> float:
        """Of the time of all tasks, in seconds, that in which the JVM collected garbage."""
        return sum(stage.gc_seconds for stage in self.stages)


@dataclass(frozen=True, slots=True)
class FilesRead:
    """The files that a batch read from one source. Instants are times of modification."""

    files: int
    oldest: float
    newest: float
    folder_changed: float | None = None  # when a file was last added to the newest one's folder, as far as is known


@dataclass(frozen=True, slots=True)
class BatchFiles:
    """The files of one batch, by the name of the source; a source without new files is absent."""

    run_id: str
    batch_id: int
    sources: Mapping[str, FilesRead]


@dataclass(frozen=True, slots=True)
class TableRead:
    """What the history of a table says of one that reads it. Instants are those of commits, in epoch seconds."""

    head: int  # the newest version; of Iceberg the id of the newest snapshot
    versions: int  # that were not read, one that was read in part included
    files: int | None = None  # with new rows in these versions
    bytes: int | None = None  # of these files
    since: float | None = None  # when the oldest of these versions was committed
    oldest: int | None = None  # the oldest version that the table still has, where older ones are gone
    oldest_at: float | None = None
    rows: int | None = None  # in these files; a Delta log does not sum them up


@dataclass(frozen=True, slots=True)
class TableCommit:
    """What one batch wrote to a table."""

    version: int
    at: float
    batch_id: int | None
    rows: int | None
    files: int | None
    bytes: int | None


@dataclass(frozen=True, slots=True)
class LoggedCommit(TableCommit):
    """A commit as the history of a table has it. Its query and batch are those of the streaming query that wrote it."""

    query_id: str | None

    def written(self) -> TableCommit:
        """What is told of it as a commit of a sink."""
        return TableCommit(self.version, self.at, self.batch_id, self.rows, self.files, self.bytes)


@dataclass(frozen=True, slots=True)
class Tables:
    """The tables that a run reads, by the name of the source, and what its own sink has committed since the last
    sample. A table that cannot be read is absent, with the reason in `errors`, by source or `sink`."""

    at: float
    run_id: str
    sources: Mapping[str, TableRead]
    commits: tuple[TableCommit, ...] = ()
    head: int | None = None  # newest version of the sink's table
    checkpoint: int | None = None  # version of the newest checkpoint of its log
    errors: Mapping[str, str] = field(default_factory=dict)


CONTINUOUS, REAL_TIME = "continuous", "real_time"
LONG_RUNNING = (CONTINUOUS, REAL_TIME)  # triggers without micro-batches: the first reports nothing, the other seldom


@dataclass(frozen=True, slots=True)
class Plan:
    """What is fixed for one run of a query, read once from the query itself."""

    run_id: str
    trigger: str | None = None  # "processing_time", "available_now", "once", "continuous", "real_time"
    trigger_interval: float | None = None  # seconds; 0.0 = back to back
    output_mode: str | None = None
    watermarks: Mapping[str, float] = field(default_factory=dict)  # column -> allowed lateness in seconds
    stateful: bool | None = None
    shuffle_partitions: int | None = None
    keys: tuple[str, ...] = ()  # columns that rows are shuffled by, widest shuffle first
    sink: str | None = None
    rate_limits: Mapping[str, str] = field(default_factory=dict)  # source option -> value
    temporary_checkpoint: bool | None = None  # Spark made one for this run only: no later run finds it
    starting_offsets: str | None = None  # of Kafka, for a query without a checkpoint: "latest", "earliest", "given"
    app_id: str | None = None
    app_name: str | None = None
    spark_version: str | None = None
    without_timeout: tuple[str, ...] = ()  # operators whose function keeps state and sets no time limit
    without_event_time: tuple[str, ...] = ()  # operators of which a watermark never removes all rows
    python: bool | None = None  # an operator runs a function in Python workers; None = not read
    rows_made: int = 1  # of each row, before they are grouped: sliding windows, grouping sets
    window_seconds: float | None = None  # of the longest window that rows are grouped by; None without any
    state_settings: Mapping[str, str] | None = None  # of `model.state_settings`, those that are set; None = not read
    delta: bool = False  # the session has Delta's extension: a function of the query may read and write its tables

    @property
    def ends_itself(self) -> bool:
        """Whether its run processes what is there, and then ends: a backlog that does not grow."""
        return self.trigger in ("available_now", "once")

    @property
    def waits_for_more(self) -> bool:
        """Whether few rows stay unread on purpose, although the query is idle."""
        return not {"minoffsetspertrigger", "maxtriggerdelay"}.isdisjoint(map(str.lower, self.rate_limits))

    @property
    def lateness(self) -> float | None:
        """The largest allowed lateness of its watermarks, in seconds; None without any."""
        return max(self.watermarks.values(), default=None)


@dataclass(frozen=True, slots=True)
class Running:
    """A running trigger, as the watchdog saw it."""

    at: float
    run_id: str
    since: float  # when the trigger began, as far as is known
    message: str  # Spark's own status message
    jobs: int | None = None  # grows with each job that Spark begins for the run
    tasks: int | None = None  # of the running jobs, as far as their stages have begun
    tasks_done: int | None = None
    tasks_running: int | None = None
    # the history fills these in: when these counts last changed, and the most seconds between two such changes
    moved: float | None = None
    pace: float = 0.0


@dataclass(frozen=True, slots=True)
class DriverCode:
    """Where the function of `foreachBatch` was in some seconds before `at`, by samples of the driver's threads."""

    at: float
    run_id: str
    samples: int
    within: int  # of the samples, in the function that has most of them
    file: str
    line: int  # most frequent one of the function
    function: str
    calls: str = ""  # the installed package that the line calls, other than Spark's

    @property
    def place(self) -> str:
        """app.py:42 in write_batch, which calls psycopg"""
        calls = f", which calls {self.calls}" if self.calls else ""
        return f"{self.file.rpartition('/')[2]}:{self.line} in {self.function}{calls}"


@dataclass(frozen=True, slots=True)
class Stack:
    """What so many threads do: classes and methods, the innermost first."""

    task: bool  # else the thread of the query in the driver
    count: int
    frames: tuple[str, ...]
    runs: bool = False  # as far as the JVM knows; it may wait in native code


@dataclass(frozen=True, slots=True)
class Stacks:
    """The distinct stacks of a run whose batch does not end: of its own thread and, in local mode, of its tasks."""

    at: float
    run_id: str
    stacks: tuple[Stack, ...]


DRIVER = "driver"  # Spark's id of the driver, which is the only executor in local mode and runs no tasks on a cluster


@dataclass(frozen=True, slots=True)
class Executor:
    """One executor as Spark reports it. Counters are since the executor began."""

    executor_id: str
    active: bool
    cores: int  # tasks that may run at once
    active_tasks: int
    failed_tasks: int
    completed_tasks: int
    run_seconds: float
    gc_seconds: float
    memory_used_bytes: int
    memory_max_bytes: int
    heap_peak_bytes: int | None = None
    shuffle_read_bytes: int = 0
    shuffle_write_bytes: int = 0


@dataclass(frozen=True, slots=True)
class RemovedExecutor:
    """An executor that the application no longer has: it was lost, or released because it was idle."""

    executor_id: str
    removed_at: float
    reason: str | None = None  # as reported by Spark, without long numbers and addresses other than its host's
    cores: int = 0
    failed_tasks: int = 0
    completed_tasks: int = 0
    host: str | None = None  # name or address of its machine


@dataclass(frozen=True, slots=True)
class Process:
    """One process of the application: the Python driver, its JVM, or the sum of its Python workers."""

    role: Literal["driver_python", "driver_jvm", "python_workers"]
    cpu_seconds: float
    memory_bytes: int
    threads: int
    open_files: int | None
    processes: int = 1


@dataclass(frozen=True, slots=True)
class Host:
    """The driver's machine, its processes, and the executors of the application. Of a container with a limit on its
    memory, the memory is that limit."""

    at: float
    cpu_count: int | None  # of the machine; an event log has those of executors only
    cpu_busy_ratio: float | None  # of all cores, since the previous sample
    memory_total_bytes: int | None
    memory_available_bytes: int | None
    disk_total_bytes: int | None
    disk_free_bytes: int | None
    processes: tuple[Process, ...] = ()
    executors: tuple[Executor, ...] = ()
    removed_executors: tuple[RemovedExecutor, ...] = ()  # the newest ones, oldest first
    cpu_pressure_ratio: float | None = None  # share of the last 10 s in which a task waited for a CPU (Linux PSI)
    cpu_steal_ratio: float | None = None  # share of CPU time that the hypervisor gave to others, since the last sample
    runnable_threads: int | None = None  # running or waiting for a CPU at the moment of the sample
    cpu_limit_cores: float | None = None  # of the driver's container, where it has one
    cpu_held_back_seconds: float | None = None  # that it held back threads for it so far, summed over CPUs

    @property
    def workers(self) -> tuple[Executor, ...]:
        """The executors that run tasks. A cluster lists its driver, too: without cores. A driver's run time is its
        uptime."""
        return tuple(each for each in self.executors if each.cores > 0 or each.executor_id != DRIVER)


@dataclass(frozen=True, slots=True)
class Observer:
    """ledgerops about itself, in one driver. Counters are since it began to observe."""

    at: float
    queue_size: int  # events that wait for the worker
    queue_limit: int
    dropped: int  # events that found the queue full
    events: int  # that Spark's listener bus delivered
    callback_seconds: float  # in Spark's listener thread
    worker_seconds: float  # of the worker's thread, in all its steps
    collector_errors: Mapping[str, int]  # by collector


@dataclass(frozen=True, slots=True)
class Heads:
    """Offsets asked of the source itself, apart from the query. Without an answer only `error` and its time are there.
    The retention is by topic, and only of topics that delete: one that is merely compacted keeps every key. The ids are
    by topic, too: one that is created again has another."""

    at: float
    latest: Offsets
    earliest: Offsets
    retention_seconds: Mapping[str, float] = field(default_factory=dict)  # absent = without limit, or unknown
    error: str | None = None  # why the source could not be asked
    unreachable_since: float | None = None  # when the first of the failed attempts began
    seconds: float | None = None  # that the answer took
    topic_ids: Mapping[str, str] = field(default_factory=dict)
