"""Jobs at work: the Spark session, the watch on it and the queries, from start to orderly end."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import ledgerops
from ledgerops.errors import UserError
from ledgerops.feed import Feed, open_tables, total_rows
from ledgerops.jobs.job import REPLAY_LATENESS, Job
from ledgerops.jobs.start import SESSION_CONF, start
from ledgerops.progress import parse_offsets
from ledgerops.runfolder import Note, RunFolder
from ledgerops.session import open_session, output_to
from ledgerops.stopping import stop_queries

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming import StreamingQuery

    from ledgerops.watch import Watch


@dataclass(frozen=True, slots=True)
class Setup:
    """What to run, all of it checked."""

    jobs: Sequence[Job]
    feed: Feed
    folder: RunFolder
    note: Note
    resumed: bool
    cores: int
    master: str | None
    port: int | None  # None: the usual one, or any free one
    trigger: float
    max_rows: int | None
    record: bool


class Running:
    """Everything that `begin` opened. Not thread-safe."""

    def __init__(self, setup: Setup, spark: SparkSession, watch: Watch, queries: Sequence[StreamingQuery]) -> None:
        self.setup, self.spark, self.watch, self.queries = setup, spark, watch, queries
        self._total = total_rows(setup.feed, setup.folder.work)
        self._done: set[str] = set()

    def status(self) -> dict[str, Any]:
        """The status document of now."""
        return self.watch.status()

    @property
    def over(self) -> bool:
        """Whether no query is left, because each failed or read all there was."""
        return not any(query.isActive for query in self.queries)

    def dry(self) -> bool:
        """Whether a bounded feed has given all its rows and every query has worked them off."""
        if self._total is None:
            return False
        for query in self.queries:
            if str(query.name) not in self._done and not query.status["isTriggerActive"]:
                progress = query.lastProgress
                if progress is not None and _read_all(progress["sources"], self._total):
                    self._done.add(str(query.name))
        return len(self._done) == len(self.queries)

    def failures(self) -> dict[str, str]:
        """What each failed query says, by name, in one line."""
        told = {}
        for query in self.queries:
            error = query.exception()
            if error is not None:
                lines = [line.strip() for line in str(error).splitlines() if line.strip()]
                told[str(query.name)] = next((line for line in lines if not line.startswith("===")), "unknown error")
        return told

    def stop(self) -> list[str]:
        """Stops the queries; returns the names of those that were stopped within a batch."""
        with output_to(self.setup.folder.log):
            return stop_queries(self.queries)

    def close(self) -> None:
        """Ends the watch, which completes the recording, and Spark. What Spark says then is for its log."""
        with output_to(self.setup.folder.log):
            self.watch.close()
            self.spark.stop()


def begin(setup: Setup) -> Running:
    """Starts Spark, the watch and the jobs. Raises UserError when something does not fit; then nothing is left open."""
    folder = setup.folder
    logging.basicConfig(filename=folder.log, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    with output_to(folder.log):
        spark = open_session(setup.master, setup.cores, folder.path, SESSION_CONF)
        watch = None
        try:
            watch = ledgerops.attach(
                spark,
                port=setup.port,
                recording=str(folder.recording) if setup.record else None,
                expected_queries=tuple(job.name for job in setup.jobs),
            )
            _check_watch(watch, setup.port)
            names = {name for job in setup.jobs for name in job.inputs}
            inputs = open_tables(setup.feed, setup.note, spark, names, setup.max_rows, folder.work)
            queries = [
                start(
                    job,
                    inputs,
                    output=folder.outputs / job.name,
                    checkpoint=folder.checkpoints / job.name,
                    trigger_seconds=setup.trigger,
                    fingerprint=f"{setup.note.source} {setup.note.digest}",
                    lateness=REPLAY_LATENESS if setup.feed.kind == "replay" else None,
                )
                for job in setup.jobs
            ]
        except BaseException:
            if watch is not None:
                watch.close()
            spark.stop()
            raise
    return Running(setup, spark, watch, queries)


def _read_all(sources: Sequence[Mapping[str, Any]], total: int) -> bool:
    """Whether every source is read up to its head, and the transactions up to their end."""
    for source in sources:
        end, latest = (parse_offsets(source[key], "") for key in ("endOffset", "latestOffset"))
        read = [offset for (topic, _), offset in end.items() if topic == "transactions"]
        if end != latest or (read and sum(read) < total):
            return False
    return bool(sources)


def _check_watch(watch: Watch, wanted: int | None) -> None:
    if watch.error is not None:
        raise UserError(f"cannot watch: {watch.error}")
    if wanted and watch.port != wanted:
        raise UserError(f"port {wanted} is in use; give another --port, or 0 for any free one")
