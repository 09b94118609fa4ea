"""Jobs at work: the Spark session, the watch on it and the queries, from start to orderly end."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import ledgerops
from ledgerops.errors import UserError
from ledgerops.feed import Feed, open_tables, total_rows
from ledgerops.jobs.job import REPLAY_LATENESS, Job
from ledgerops.jobs.sinks import ParquetSink
from ledgerops.jobs.start import SESSION_CONF, start
from ledgerops.ledger.csvfile import rejected
from ledgerops.progress import parse_offsets
from ledgerops.runfolder import Note, RunFolder
from ledgerops.services import Services, open_services
from ledgerops.session import open_session, output_to
from ledgerops.stopping import stop_queries

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming import StreamingQuery

    from ledgerops.watch import Watch

OPENING = ("Initializing", "Getting offsets")  # what a query's status says until its source has answered
SOURCE_SECONDS = 60.0
ATTEMPTS = 3
NO_ANSWER = "Python worker failed to connect back"


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
    service_urls: Mapping[str, str]  # those that were given, by name; for the others a local one is opened

    @property
    def inputs(self) -> set[str]:
        """The tables that the jobs read."""
        return {name for job in self.jobs for name in job.inputs}

    @property
    def services(self) -> set[str]:
        """What the jobs ask besides Spark."""
        return {name for job in self.jobs for name in job.services}


class Running:
    """Everything that `begin` opened. Not thread-safe."""

    def __init__(
        self, setup: Setup, spark: SparkSession, watch: Watch, queries: Sequence[StreamingQuery], services: Services
    ) -> None:
        self.setup, self.spark, self.watch, self.queries = setup, spark, watch, queries
        self._services = services
        self._totals = total_rows(setup.feed, setup.inputs, setup.folder.work)
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
        if not self._totals:
            return False
        for query in self.queries:
            if str(query.name) not in self._done and not query.status["isTriggerActive"]:
                progress = query.lastProgress
                if progress is not None and _read_all(progress["sources"], self._totals):
                    self._done.add(str(query.name))
        return len(self._done) == len(self.queries)

    def refused(self) -> int:
        """How many rows of the data files were not readable; they are kept in the work folder's rejects.jsonl."""
        return len(rejected(self.setup.folder.work))

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
            self._services.close()


def begin(setup: Setup) -> Running:
    """Starts Spark, the watch and the jobs. Raises UserError when something does not fit; then nothing is left open."""
    folder = setup.folder
    logging.basicConfig(filename=folder.log, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    with output_to(folder.log):
        services = open_services(setup.services, setup.service_urls, folder.work, setup.feed)
        spark = watch = None
        try:
            spark = open_session(setup.master, setup.cores, folder.path, SESSION_CONF)
            watch = ledgerops.attach(
                spark,
                port=setup.port,
                recording=str(folder.recording) if setup.record else None,
                expected_queries=tuple(job.name for job in setup.jobs),
            )
            _check_watch(watch, setup.port)
            inputs = open_tables(setup.feed, setup.note, spark, setup.inputs, setup.max_rows, folder.work)
            queries = [_start_one(job, setup, inputs, services.urls) for job in setup.jobs]
        except BaseException:
            if watch is not None:
                watch.close()
            if spark is not None:
                spark.stop()
            services.close()
            raise
    return Running(setup, spark, watch, queries, services)


def _start_one(job: Job, setup: Setup, inputs: Mapping[str, DataFrame], services: Mapping[str, str]) -> StreamingQuery:
    """Starts a job and waits until its source has answered.

    Each source begins with a Python process of its own, to which Spark gives ten seconds: six at once on two busy cores
    take longer. A query that died of it has done nothing yet, so it may simply be started again.
    """
    folder, attempt = setup.folder, 0
    while True:
        attempt += 1
        query = start(
            job,
            inputs,
            sink=ParquetSink(folder.outputs / job.name),
            checkpoint=folder.checkpoints / job.name,
            trigger_seconds=setup.trigger,
            fingerprint=f"{setup.note.source} {setup.note.digest}",
            lateness=REPLAY_LATENESS if setup.feed.kind == "replay" else None,
            services=services,
        )
        limit = time.monotonic() + SOURCE_SECONDS
        while query.isActive and time.monotonic() < limit and query.status["message"].startswith(OPENING):
            time.sleep(0.05)
        if attempt == ATTEMPTS or query.isActive or NO_ANSWER not in str(query.exception()):
            return query


def _read_all(sources: Sequence[Mapping[str, Any]], totals: Mapping[str, int]) -> bool:
    """Whether every source is read to its end."""
    for source in sources:
        read: dict[str, int] = {}
        for (topic, _), offset in parse_offsets(source["endOffset"], "").items():
            read[topic] = read.get(topic, 0) + offset
        if not read or any(offset < totals.get(topic, 0) for topic, offset in read.items()):
            return False
    return True


def _check_watch(watch: Watch, wanted: int | None) -> None:
    if watch.error is not None:
        raise UserError(f"cannot watch: {watch.error}")
    if wanted and watch.port != wanted:
        raise UserError(f"port {wanted} is in use; give another --port, or 0 for any free one")
