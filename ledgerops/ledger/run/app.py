"""A run of jobs: the Spark session, the watch on it and the queries, from the start to an orderly end."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JError
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import StreamingQuery

import ledgerops
from ledgerops.checkpoint.batch_log import BatchLog
from ledgerops.common.shutdown import stop_queries
from ledgerops.errors import UserError
from ledgerops.ledger.jobs.job import REPLAY_LATENESS, Job
from ledgerops.ledger.run import failures
from ledgerops.ledger.run.cluster import check_executors, check_file_system, is_remote
from ledgerops.ledger.run.completion import CatchUpCheck
from ledgerops.ledger.run.run_dir import RunDir, RunNote, remove_unused
from ledgerops.ledger.run.services import open_services
from ledgerops.ledger.run.sink import RunSink
from ledgerops.ledger.run.source import RunSource, open_tables, read_source_heads
from ledgerops.ledger.run.spark_session import open_session, output_to, quick_start_conf
from ledgerops.ledger.run.start import SESSION_CONF, provider_of, start
from ledgerops.ledger.sinks import DeltaSink
from ledgerops.ledger.sources.csv_file import rejected

if TYPE_CHECKING:
    from ledgerops import Watch


@dataclass(frozen=True, slots=True)
class RunSetup:
    """What to run, all of it checked."""

    jobs: Sequence[Job]
    source: RunSource
    folder: RunDir
    note: RunNote
    resumed: bool
    cores: int
    port: int | None  # None: the usual one, or any free one
    trigger: float
    master: str | None = None
    max_rows: int | None = None  # a batch; files, of a landing folder
    record: bool = True
    service_urls: Mapping[str, str] = field(default_factory=dict)  # by name; for the others a local one is opened
    sink: RunSink = field(default_factory=RunSink)
    jars: Sequence[Path] = ()  # that the source or the sink needs
    lateness: str | None = None  # in place of what the jobs or the source have; a Spark interval
    until_caught_up: bool = False
    kafka_config: Path | None = None  # of the source's client, for the watch, which asks the brokers itself
    quick_start: bool = False  # choose JVM options for a run of minutes
    conf: Mapping[str, str] = field(default_factory=dict)  # Spark's settings from the command line
    executor_python: str | None = None

    @property
    def inputs(self) -> set[str]:
        """The tables that the jobs read."""
        return {name for job in self.jobs for name in job.inputs}

    @property
    def upstream(self) -> dict[str, str]:
        """By job, the job whose table it reads instead of the source's."""
        return self.sink.upstream(self.jobs)

    @property
    def watch_options(self) -> dict[str, str]:
        """The options with which the watch asks the source how far the queries are behind."""
        if self.source.kafka is None:
            return {}
        config = {"kafka_config": str(self.kafka_config.resolve())} if self.kafka_config else {}
        return {"kafka_servers": self.source.kafka.client.servers, **config}

    def kept_partitions(self) -> dict[str, int]:
        """The number of shuffle partitions of each checkpoint that has another than the session, by job: it stays."""
        found = {}
        for job in self.jobs:
            number = BatchLog(self.folder.checkpoints / job.name).newest.shuffle_partitions
            if job.stateful and number is not None and number != self.cores:
                found[job.name] = number
        return found


JVM_ERRORS = (Py4JError, ConnectionError)  # what a call into Spark raises once its JVM ends, among others


class ActiveRun:
    """Everything that `start_run` opened. Not thread-safe."""

    def __init__(
        self,
        setup: RunSetup,
        spark: SparkSession,
        watch: Watch,
        queries: Sequence[StreamingQuery],
        opened: ExitStack,
        catch_up: CatchUpCheck | None = None,
    ) -> None:
        self.setup, self.spark, self.watch, self.queries = setup, spark, watch, queries
        self._opened = opened
        self._catch_up = catch_up

    def status(self) -> dict[str, Any]:
        """The present status document."""
        return self.watch.status()

    @property
    def over(self) -> bool:
        """Whether no query runs any more: each has failed or read all there was."""
        return not any(query.isActive for query in self.queries)

    def caught_up(self) -> bool:
        """Whether every query has processed all rows of a bounded source, or all that were there at the start."""
        return self._catch_up is not None and self._catch_up.done()

    def rejected_rows(self) -> int:
        """How many rows of the data files could not be read; they are in the work folder's rejects.jsonl."""
        return len(rejected(self.setup.folder.work))

    def failures(self) -> dict[str, str]:
        """Why each failed query failed, in one line, by name."""
        causes = {}
        for query in self.queries:
            error = query.exception()
            if error is not None:
                causes[str(query.name)] = failures.cause(str(error))
        return causes

    def incompatible(self) -> str | None:
        """The message for a job that cannot read its state, which another version of it wrote; None without one."""
        for query in self.queries:
            if not query.isActive and (error := query.exception()) is not None:
                name = str(query.name)
                found = failures.incompatible(name, self.setup.folder.checkpoints / name, str(error))
                if found is not None:
                    return found
        return None

    @property
    def lost(self) -> bool:
        """Whether Spark has ended, or is about to, without having been asked: its JVM was killed or got a signal."""
        try:
            return bool(self.spark.sparkContext._jsc.sc().isStopped())
        except JVM_ERRORS:
            return True

    def stop(self) -> list[str]:
        """Stops the queries; returns the names of those that were stopped within a batch."""
        with output_to(self.setup.folder.log):
            return stop_queries(self.queries)

    def close(self) -> None:
        """Ends the watch, which completes the recording, and Spark. What Spark says then is for its log."""
        with output_to(self.setup.folder.log):
            self._opened.close()


def start_run(setup: RunSetup) -> ActiveRun:
    """Starts Spark, the watch and the jobs. Raises UserError when something does not fit; then nothing is left open."""
    folder = setup.folder
    logging.basicConfig(filename=folder.log, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    with output_to(folder.log), ExitStack() as opened:
        wanted = {name for job in setup.jobs for name in job.services}
        services = open_services(wanted, setup.service_urls, folder.work, setup.source, opened, setup.master)
        jars = {"spark.jars": ",".join(map(str, setup.jars))} if setup.jars else {}
        quick = quick_start_conf() if setup.quick_start else {}
        conf = {"spark.app.name": folder.app, **SESSION_CONF, **jars, **quick, **setup.sink.conf, **setup.conf}
        spark = open_session(setup.master, setup.cores, folder.path, conf, setup.executor_python, folder.log)
        opened.callback(_end_spark, spark)
        check_file_system(spark, folder.path)
        if is_remote(setup.master):
            check_executors(spark, folder.path)
        watch = ledgerops.attach(
            spark,
            port=setup.port,
            recording=str(folder.recording) if setup.record else None,
            expected_queries=tuple(job.name for job in setup.jobs),
            **setup.watch_options,
        )
        opened.callback(watch.close)
        _check_watch(watch, setup.port)
        inputs = open_tables(setup.source, setup.note, spark, setup.inputs, setup.max_rows, folder.work)
        bounded = setup.until_caught_up or setup.source.kind == "replay"
        ends = read_source_heads(setup.source, setup.inputs, folder.work) if bounded else {}
        _prepare_tables(setup, inputs)
        queries = [_start_one(job, setup, inputs, services) for job in setup.jobs]
        kept = opened.pop_all()
    tables = {name: folder.outputs / table for name, table in setup.upstream.items()}
    catch_up = CatchUpCheck(queries, folder.checkpoints, ends, tables) if bounded else None
    return ActiveRun(setup, spark, watch, queries, kept, catch_up)


def _end_spark(spark: SparkSession) -> None:
    with suppress(*JVM_ERRORS):  # its JVM may have ended, or got the same signal
        spark.stop()


def _prepare_tables(setup: RunSetup, inputs: Mapping[str, DataFrame]) -> None:
    """Makes the tables that other jobs read, where there are none yet."""
    for job in setup.jobs:
        sink = setup.sink.for_job(job, setup.folder)
        if job.name in setup.upstream.values() and isinstance(sink, DeltaSink):
            sink.prepare(job.transform(*(inputs[name] for name in job.inputs)))


def _start_one(
    job: Job, setup: RunSetup, inputs: Mapping[str, DataFrame], services: Mapping[str, str]
) -> StreamingQuery:
    folder, checkpoint = setup.folder, setup.folder.checkpoints / job.name
    table = setup.upstream.get(job.name)
    if table is not None:
        session = next(iter(inputs.values())).sparkSession
        inputs = {job.inputs[0]: session.readStream.format("delta").load(str(folder.outputs / table))}
    if setup.source.kafka is not None:  # else the place that an earlier --start named would still count
        remove_unused(checkpoint)
    return start(
        job,
        inputs,
        sink=setup.sink.for_job(job, folder),
        checkpoint=checkpoint,
        trigger_seconds=setup.trigger,
        fingerprint=f"{table} table" if table else f"{setup.note.source} {setup.note.digest}",
        lateness=setup.lateness or (REPLAY_LATENESS if setup.source.kind == "replay" else None),
        services=services,
        provider=provider_of(job, setup.conf),
    )


def _check_watch(watch: Watch, wanted: int | None) -> None:
    if watch.error is not None:
        raise UserError(f"cannot attach the observer: {watch.error}")
    if wanted and watch.port != wanted:
        raise UserError(f"port {wanted} is in use; give another --port, or 0 for any free one")
