"""What the histories of the Delta tables say that the watched queries read and write, in a thread of its own.

A table is asked for newer versions every ten seconds at most, one that several queries use once. In between, what is
left is computed anew for each batch, from what was read before.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import orjson

from ledgerops.agent.delta_table import DeltaTable
from ledgerops.agent.hadoop_files import FileError, Files
from ledgerops.agent.queue import EventQueue
from ledgerops.agent.sessions import Session
from ledgerops.model.records import TableCommit, TableRead
from ledgerops.runtime.runs import Run, Runs

ASK_SECONDS = 10.0  # between two questions to a table
RETRY_SECONDS = 60.0  # after a table could not be read
MAX_COMMITS = 20  # of a sink that are read in one round
SINK = "sink"  # in errors


@dataclass(slots=True)
class _Followed:
    """A table, when it is asked next, and why it could not be read."""

    table: DeltaTable
    due: float = float("-inf")
    round: int = 0  # in which it was asked last
    error: str | None = None


@dataclass(slots=True)
class _Told:
    """What was queued last for a run, and where in its sink's log its next commit is searched."""

    first_batch: int
    seen: object = None
    next_version: int | None = None
    commits: list[TableCommit] = field(default_factory=list)  # not queued yet


class TableCollector:
    """`open_files` makes the file system of a session."""

    def __init__(
        self,
        queue: EventQueue,
        runs: Runs,
        open_files: Callable[[Session], Files],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._queue, self._runs, self._open, self._clock = queue, runs, open_files, clock
        self._files: dict[str, Files] = {}  # by session
        self._tables: dict[tuple[str, str], _Followed] = {}  # by session and folder
        self._told: dict[str, _Told] = {}  # by run id
        self._round = 0

    def collect(self) -> None:
        """Queues what is new of the tables of each run. Raises FileError at the end for one that cannot be read."""
        self._round += 1
        runs = [run for run in self._runs.runs() if run.session.classic and (run.tables or run.sink_folder)]
        for run in runs:
            self._collect(run)
        active, sessions = {run.run_id for run in runs}, {run.session.key for run in runs}
        self._told = {run_id: told for run_id, told in self._told.items() if run_id in active}
        self._files = {key: files for key, files in self._files.items() if key in sessions}
        self._tables = {key: table for key, table in self._tables.items() if key[0] in sessions}
        for followed in self._tables.values():
            if followed.error is not None and followed.round == self._round:
                raise FileError(f"{followed.table.folder}: {followed.error}")

    def _collect(self, run: Run) -> None:
        told = self._told.setdefault(run.run_id, _Told(run.last_batch or 0))
        sink_folder = run.sink_folder
        sources: dict[str, TableRead] = {}
        errors: dict[str, str] = {}
        for name, (folder, position) in run.tables.items():
            followed = self._ask(run.session, folder, position.version - 1)
            table = followed.table
            if table.head is not None:
                self._try(followed, partial(table.read_commits, position.version, table.head))
                sources[name] = table.unread(position)
            if followed.error is not None:
                errors[name] = followed.error
        head = checkpoint = None
        if sink_folder is not None:
            followed = self._ask(run.session, sink_folder, -1)
            self._try(followed, partial(_find_commits, run, told, followed.table))
            head, checkpoint = followed.table.head, followed.table.checkpoint
            if followed.error is not None:
                errors[SINK] = followed.error
        self._tell(run, told, {"sources": sources, "errors": errors, "head": head, "checkpoint": checkpoint})

    def _tell(self, run: Run, told: _Told, seen: dict[str, Any]) -> None:
        if seen == told.seen and not told.commits:
            return
        data = orjson.dumps({"run_id": run.run_id, "commits": told.commits, **seen})
        if self._queue.put("tables", data, run.query, run.session):
            told.seen, told.commits = seen, []

    def _ask(self, session: Session, folder: str, known: int) -> _Followed:
        """The table, asked for newer versions if it is due; it has at least `known` (-1 for none)."""
        key = (session.key, folder)
        if key not in self._tables:
            if session.key not in self._files:
                self._files[session.key] = self._open(session)
            self._tables[key] = _Followed(DeltaTable(self._files[session.key], folder))
        followed, now = self._tables[key], self._clock()
        if now >= followed.due:
            followed.due, followed.round, followed.error = now + ASK_SECONDS, self._round, None
            self._try(followed, partial(followed.table.advance, known, now))
        return followed

    def _try(self, followed: _Followed, question: Callable[[], object]) -> None:
        """Puts a question to a table that was asked in this round and could be read."""
        if followed.round != self._round or followed.error is not None:
            return
        try:
            question()
        except FileError as error:
            followed.due, followed.error = self._clock() + RETRY_SECONDS, str(error)


def _find_commits(run: Run, told: _Told, table: DeltaTable) -> None:
    """The commits of the run's own batches, from the first batch that was seen."""
    assert table.head is not None
    if told.next_version is None:
        told.next_version = max(0, table.head - MAX_COMMITS + 1)
    last = min(table.head, told.next_version + MAX_COMMITS - 1)
    table.read_commits(told.next_version, last)
    for version in range(told.next_version, last + 1):
        commit = table.commits[version]
        told.next_version = version + 1
        if commit.query_id == run.query_id and (commit.batch_id or 0) >= told.first_batch:
            told.commits.append(commit.written())
