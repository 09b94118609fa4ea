"""The active runs, for threads other than the worker's: the part of the registry that may be read at any time."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ledgerops.model.history import ClockStep, History
from ledgerops.model.records import Observation, Offsets, Plan, Progress, TablePosition
from ledgerops.model.sources import NAMED, sink_table
from ledgerops.signals.partitions import lowest_offsets

SIGNS_OF_LIFE = ("started", "progress", "idle")  # events of Spark's own
LAST_LOOK_SECONDS = 15.0  # for which collectors may still read of a run that has ended what its last batches did
MAX_ENDED_RUNS = 1000  # run ids kept after their end: late observations must not bring a run back


@dataclass(slots=True)
class Run:
    """One run of a query. None before they are known: its plan, and the first and the last batch that were reported.
    Instants in seconds."""

    query: str
    query_id: str
    run_id: str
    session: Any  # that it belongs to: the origin of its observations
    last_seen: float
    begun: float | None = None
    idle: bool = False
    first_batch: int | None = None
    last_batch: int | None = None
    plan: Plan | None = None
    handle: Any = None  # PySpark's StreamingQuery, once a collector has asked for it
    files: FileEntries | None = None  # of the newest batch; None before the first
    tables: Mapping[str, TableInput] = field(default_factory=dict)  # that it reads, by the name of the source
    sink_table: str | None = None  # what the table is found by that it writes
    kafka_offsets: Offsets = field(default_factory=dict)  # next offset to read of each Kafka partition
    over: bool = False


class FileEntry(NamedTuple):
    """Where a file source noted the files that a batch took."""

    number: int  # of the source in the query
    entry: int  # in the source's log
    folder: str = ""  # that it reads, as Spark describes it: `file:/landing`


class FileEntries(NamedTuple):
    """Those of one batch, by the names of the sources that had new files."""

    batch_id: int
    sources: Mapping[str, FileEntry]


class TableInput(NamedTuple):
    """A table that a run reads: what it is found by, and where the run is in it."""

    table: str
    position: TablePosition


class Consumed(NamedTuple):
    """How far a run of a query has read Kafka."""

    run_id: str
    offsets: Offsets


class Runs:
    """The registry writes it; every method may be called by any thread."""

    def __init__(self, steady: Callable[[], float] = time.monotonic) -> None:
        self._lock, self._steady = threading.Lock(), steady
        self._runs: dict[str, Run] = {}
        self._over: list[tuple[float, Run]] = []  # those that ended a moment ago, and when
        self._ended: deque[str] = deque(maxlen=MAX_ENDED_RUNS)
        self._consumed: dict[str, Consumed] = {}  # by query

    def note(self, seen: Observation, history: History, origin: Any) -> None:
        """Takes in an observation that `history` has taken in. `origin` is its session; None where it has none."""
        run_id = seen.data.get("runId") or seen.data.get("run_id")
        if not isinstance(run_id, str):
            return
        with self._lock:
            if seen.kind == "terminated":
                if seen.data.get("lost") is not True:  # a lost run may turn up again
                    self._ended.append(run_id)
                run, now = self._runs.pop(run_id, None), self._steady()
                over = next((each for each in reversed(history.ends) if each.run_id == run_id), None)
                if run is not None and over is not None and not (over.lost or over.unwatched):
                    run.over = True
                    self._over.append((now, run))
                return
            if seen.kind == "progress" and history.last is not None:
                self._consumed[history.query] = Consumed(history.last.run_id, kafka_offsets(history.last))
            run = self._runs.get(run_id)
            if run is None:
                # what a collector found of a run that has ended brings none back, nor what an attach let in again
                if origin is None or run_id in self._ended or seen.kind not in SIGNS_OF_LIFE:
                    return
                query_id = str(seen.data.get("id") or "")
                begun = history.started_at if history.run_id == run_id else None
                run = self._runs[run_id] = Run(history.query, query_id, run_id, origin, seen.at, begun)
            run.query = history.query  # a run may have got a name of its own
            if seen.kind in SIGNS_OF_LIFE:
                run.last_seen = seen.at
                run.idle = seen.kind == "idle"
            if seen.kind == "progress":
                run.last_batch = int(seen.data["batchId"])
                run.first_batch = run.last_batch if run.first_batch is None else run.first_batch
                if history.last is not None:  # else it began before the clock was set
                    batch = history.last
                    run.tables = table_inputs(batch)
                    planned = run.plan.sink or "" if run.plan is not None else ""
                    run.sink_table = sink_table(batch.sink) or sink_table(planned)  # before a batch there may be none
                    run.files = FileEntries(batch.batch_id, file_entries(batch))
                    run.kafka_offsets = self._consumed[history.query].offsets
            elif seen.kind == "plan":
                run.plan = history.plan

    def move(self, step: ClockStep) -> None:
        """After the machine's clock was set: what was seen last was seen as long ago as before."""
        with self._lock:
            for run in self._runs.values():
                run.last_seen = step.moved(run.last_seen)

    def forget(self, query: str) -> None:
        """After the registry has forgotten an ended query."""
        with self._lock:
            self._consumed.pop(query, None)

    def runs(self) -> list[Run]:
        """A copy of the list, in the order of their starts; its items keep changing."""
        with self._lock:
            return list(self._runs.values())

    def recent(self, stopped: bool = False) -> list[Run]:
        """The active runs, and those of living sessions that ended a moment ago; with `stopped`, of all sessions."""
        with self._lock:
            now = self._steady()
            self._over = [(at, run) for at, run in self._over if now - at < LAST_LOOK_SECONDS]
            return [*self._runs.values(), *(run for _, run in self._over if stopped or run.session.alive)]

    def by_query(self) -> Mapping[str, Run]:
        """The newest run of each query that has one."""
        return {run.query: run for run in self.runs()}

    def consumed(self) -> Mapping[str, Consumed]:
        """How far each query has read Kafka, those that have ended included."""
        with self._lock:
            return dict(self._consumed)

    def readmit(self) -> None:
        """Forgets which runs have ended: runs may continue in a session that is attached again."""
        with self._lock:
            self._ended.clear()

    def knows(self, run_id: str) -> bool:
        """Whether a run is active, or has ended."""
        with self._lock:
            return run_id in self._runs or run_id in self._ended


def kafka_offsets(batch: Progress) -> Offsets:
    """The next offset that the query will read of each Kafka partition; of two sources the slower."""
    ends = lowest_offsets(source.end for source in batch.sources if NAMED[source.kind].has_broker)
    return {partition: end for partition, end in ends.items() if partition[1].isdecimal()}


def table_inputs(batch: Progress) -> Mapping[str, TableInput]:
    """The tables that a batch read, by the name of the source, and where it ended in them."""
    found = {}
    for source in batch.sources:
        table = NAMED[source.kind].table(source.description)
        if table is not None and source.table is not None:
            found[source.name] = TableInput(table, source.table)
    return found


def file_entries(batch: Progress) -> Mapping[str, FileEntry]:
    """The file sources that had new files in a batch, by name."""
    return {
        source.name: FileEntry(number, entry, source.description.partition("[")[2].removesuffix("]"))
        for number, source in enumerate(batch.sources)
        if NAMED[source.kind].logs_files and source.moved
        for entry in source.end.values()
    }
