"""What the histories of the Delta and Iceberg tables, and the logs of the file sinks, say that the watched queries use,
in a thread of its own.

A table is asked for newer versions every ten seconds at most, one of Delta that several queries use once; that which a
run writes also at the end of the run, and of the watch. In between, what is left is computed anew for each batch, from
what was read before, and commits of a sink that were too many for one round are read.
"""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import orjson

from ledgerops.agent.delta_table import DeltaTable
from ledgerops.agent.file_sink import FileSinkLog
from ledgerops.agent.hadoop_files import FileError, HadoopFiles
from ledgerops.agent.iceberg_table import IcebergTable, JavaSnapshots
from ledgerops.agent.queue import EventQueue
from ledgerops.agent.sessions import Session
from ledgerops.model.records import TableCommit, TableRead
from ledgerops.model.sources.files import is_sink_log
from ledgerops.model.sources.iceberg import is_iceberg
from ledgerops.runtime.runs import Run, Runs

ASK_SECONDS = 10.0  # between two questions to a table
RETRY_SECONDS = 60.0  # after a table could not be read
SINK = "sink"  # in errors
Table = DeltaTable | IcebergTable | FileSinkLog


@dataclass(slots=True)
class _Followed:
    """A table, when it is asked for newer versions next, and why it could not be read."""

    table: Table
    due: float = float("-inf")
    round: int = 0  # in which it was asked last
    failed: int = 0  # the round in which it could not be read last
    error: str | None = None


@dataclass(slots=True)
class _Told:
    """What was queued last for a run, and up to which version its sink was searched for its commits."""

    seen: object = None
    version: int | None = None
    commits: list[TableCommit] = field(default_factory=list)  # not queued yet
    at_end: bool = False  # whether its sink was asked since the run is over


class TableCollector:
    """`open_files` makes the file system of a session, `open_snapshots` the Iceberg table of a run: that of a source as
    Spark describes it, or that of its sink (None)."""

    def __init__(
        self, queue: EventQueue, runs: Runs, open_files: Callable[[Session], HadoopFiles],
        clock: Callable[[], float] = time.monotonic,
        open_snapshots: Callable[[Run, str | None], JavaSnapshots] = JavaSnapshots,
    ) -> None:  # fmt: skip
        self._queue, self._runs, self._open, self._clock = queue, runs, open_files, clock
        self._open_snapshots = open_snapshots
        self._files: dict[str, HadoopFiles] = {}  # by session
        self._tables: dict[tuple[str, str], _Followed] = {}  # by session, or run, and what it is found by
        self._told: dict[str, _Told] = {}  # by run id
        self._used: set[tuple[str, str]] = set()  # of these, in this round
        self._round = 0
        self._lock, self._closing = threading.Lock(), False

    def collect(self) -> None:
        """Queues what is new of the tables of each run. Raises FileError at the end for one that cannot be read."""
        with self._lock:
            self._collect_all()

    def close(self) -> None:
        """Queues what each run has written since: of a job of a few seconds that is most. Call it at the end, once the
        worker knows the last batches. Raises FileError, too."""
        with self._lock:
            self._closing = True
            self._collect_all()

    def _collect_all(self) -> None:
        self._round += 1
        self._used.clear()
        recent = self._runs.recent(stopped=True)
        runs = [run for run in recent if run.session.classic and self._can_be_read(run)]
        for run in runs:
            if self._closing or not run.over or run.session.alive:  # after a stop the JVM lives on until the exit
                self._collect(run)
            elif run.sink_table is not None:
                self._used.add(_key(run, run.sink_table))  # what was counted of it must stay known
        active, sessions = {run.run_id for run in runs}, {run.session.key for run in runs}
        self._told = {run_id: told for run_id, told in self._told.items() if run_id in active}
        self._files = {key: files for key, files in self._files.items() if key in sessions}
        self._tables = {key: table for key, table in self._tables.items() if key in self._used}
        for followed in self._tables.values():
            if followed.failed == self._round:
                raise FileError(f"{followed.table.name}: {followed.error}")

    def _can_be_read(self, run: Run) -> bool:
        """Whether a run uses a table. Of one that is over Spark gives no handle, by which Iceberg's is found."""
        places = [*(place for place, _ in run.tables.values()), *([run.sink_table] if run.sink_table else [])]
        return bool(places) and not (run.over and run.handle is None and any(map(is_iceberg, places)))

    def _collect(self, run: Run) -> None:
        told = self._told.setdefault(run.run_id, _Told())
        sources: dict[str, TableRead] = {}
        errors: dict[str, str] = {}
        for name, (place, position) in run.tables.items():
            followed = self._ask(run, place, place, position.version - 1)
            table = followed.table
            if not isinstance(table, FileSinkLog) and table.head is not None:
                if followed.round == self._round:  # a position beyond it cannot be followed to it
                    self._try(followed, partial(table.follow, position))
                read = table.unread(position)
                if read is not None:
                    sources[name] = read
            if followed.error is not None:
                errors[name] = followed.error
        head = checkpoint = None
        if run.sink_table is not None:
            known = run.last_batch if is_sink_log(run.sink_table) else None
            at_once = self._closing or (run.over and not told.at_end)
            followed = self._ask(run, run.sink_table, None, -1 if known is None else known, at_once)
            told.at_end = run.over
            self._try(followed, partial(_find_commits, run, told, followed.table))
            head, checkpoint = followed.table.version, followed.table.checkpoint
            if followed.error is not None:
                errors[SINK] = followed.error
        self._tell(run, told, {"sources": sources, "errors": errors, "head": head, "checkpoint": checkpoint})

    def _tell(self, run: Run, told: _Told, seen: dict[str, Any]) -> None:
        if (self._closing or seen == told.seen) and not told.commits:
            return
        data = orjson.dumps({"run_id": run.run_id, "commits": told.commits, **seen})
        if self._queue.put("tables", data, run.query, run.session):
            told.seen, told.commits = seen, []

    def _ask(self, run: Run, place: str, source: str | None, known: int, at_once: bool = False) -> _Followed:
        """The table, asked for newer versions if it is due or `at_once`; it has at least `known` (-1 for none)."""
        key = _key(run, place)
        self._used.add(key)
        if key not in self._tables:
            self._tables[key] = _Followed(self._table(run, place, source))
        followed, now = self._tables[key], self._clock()
        if at_once or now >= followed.due:
            followed.due, followed.round, followed.error = now + ASK_SECONDS, self._round, None
            self._try(followed, partial(followed.table.advance, known, now))
        return followed

    def _table(self, run: Run, place: str, source: str | None) -> Table:
        if is_iceberg(place):
            return IcebergTable(self._open_snapshots(run, source), "iceberg" if source else place)
        if run.session.key not in self._files:
            self._files[run.session.key] = self._open(run.session)
        files = self._files[run.session.key]
        if is_sink_log(place):
            return FileSinkLog(files, place, run.query_id, run.first_batch or 0, run.begun)
        return DeltaTable(files, place)

    def _try(self, followed: _Followed, question: Callable[[], object]) -> None:
        """Puts a question to a table that could be read."""
        if followed.error is not None:
            return
        try:
            question()
        except FileError as error:
            followed.due, followed.failed, followed.error = self._clock() + RETRY_SECONDS, self._round, str(error)


def _key(run: Run, place: str) -> tuple[str, str]:
    """Iceberg's table object is the run's own: the next run has another, which alone it refreshes. So is a file sink's
    log: another query may start anew in its folder."""
    return (run.run_id if is_iceberg(place) or is_sink_log(place) else run.session.key), place


def _find_commits(run: Run, told: _Told, table: Table) -> None:
    """The commits of the run's own batches, from the first batch that was reported."""
    for commit in table.commits(told.version):
        told.version = commit.version
        if commit.query_id == run.query_id and (commit.batch_id or 0) >= (run.first_batch or 0):
            told.commits.append(commit.written())
