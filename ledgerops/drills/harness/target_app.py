"""The driver of a scripted drill: an application with real queries of the ledger that does not know the truth.

`target.py` runs it, under `ledgerops exec`.
"""

import json
import os
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import DataStreamWriter, StreamingQuery

import ledgerops
from ledgerops.common.kafka import KafkaClient
from ledgerops.drills.applications.outside import deliver
from ledgerops.ledger.jobs import find_job
from ledgerops.ledger.jobs.job import Job
from ledgerops.ledger.plan.plan import parse_plan
from ledgerops.ledger.run.start import start
from ledgerops.ledger.sinks.batches import by_batch
from ledgerops.ledger.sources import kafka
from ledgerops.ledger.sources.tables import open_source

TRIGGER_SECONDS = 2.0
RESTART_SECONDS = 1.0  # from the failure of a supervised query to its restart

Starter = Callable[[], StreamingQuery]


class Outside:
    """The sink of a job: processes rows without keeping them, as slowly as the outside is told to be."""

    remembers: ClassVar[bool] = False

    def __str__(self) -> str:
        return "a sink outside"

    def last_batch(self, job: Job, checkpoint: Path) -> int | None:
        """None: the sink keeps no rows, so it has no batch to name."""
        return None

    def write(self, job: Job, rows: DataFrame, checkpoint: Path) -> DataStreamWriter:
        """The writer of `rows`."""
        return by_batch(job, rows, checkpoint, deliver)


@dataclass
class Kept:
    """A query that was started, how to start it again after a failure, and when that is due (epoch seconds)."""

    query: StreamingQuery
    again: Starter | None = None
    due: float = 0.0
    failure_noted: bool = False


class TargetApp:
    """The tools of a drill's `start`, in the driver."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        stored = json.loads((folder / "drill.json").read_text("utf-8"))
        self.spark, self.folder = spark, folder
        self.drill: str = stored["drill"]
        self.names: dict[str, str] = stored["names"]
        self.kept: dict[str, Kept] = {}
        self.each_turn: list[Callable[[], None]] = []  # called ten times a second by the driver's main thread
        self.origin = 0.0

    def rows(
        self,
        plan: str,
        *,
        max_rows: int | None = None,
        origin: float | None = None,
        label: str | None = None,
    ) -> DataFrame:
        """A stream of the embedded source by a load plan (YAML text), instrumented as by `ledgerops run`. `label`
        distinguishes the observations of two sources of one query."""
        rows = open_source(
            self.spark, "transactions", plan=parse_plan(plan, f"{self.drill}.yaml"), work_dir=self.folder / "work",
            origin=self.origin if origin is None else origin, max_rows_per_trigger=max_rows,
        )  # fmt: skip
        return _instrumented(rows, label)

    def partitioned_rows(self, plan: str) -> DataFrame:
        """A stream of the embedded source of which each partition is a task, as Kafka's are."""
        options = {"plan": plan, "table": "transactions", "origin": repr(self.origin), "rowsPerTask": "1"}
        return _instrumented(self.spark.readStream.format("ledger").options(**options).load())

    def topic(self, table: str = "transactions", max_rows: int | None = None, lossy: bool = False) -> DataFrame:
        """A stream from the broker, as `ledgerops run --source kafka` reads it."""
        client = KafkaClient(os.environ["LEDGEROPS_KAFKA_SERVERS"])
        topics = kafka.Topics(client, "", kafka.read_start("latest"), lossy)
        rows = kafka.open_table(self.spark, topics, table, max_rows, f"{table}_rejects")
        return _instrumented(rows) if table == "transactions" else rows

    def job(
        self,
        name: str,
        rows: DataFrame | str,
        *,
        role: str = "main",
        trigger: float = TRIGGER_SECONDS,
        lateness: str | None = None,
        available_now: bool = False,
        transform: Callable[..., DataFrame] | None = None,
    ) -> StreamingQuery:
        """Starts a job of the ledger that reads transactions, or those of a load plan, under a random name.
        `transform` replaces the job's own, for a drill whose fault is in the query."""
        known = find_job(name)
        job = replace(known, name=self.names[role], transform=transform or known.transform)
        inputs = {"transactions": self.rows(rows) if isinstance(rows, str) else rows}
        return self._run(
            role,
            lambda: start(
                job, inputs, sink=Outside(), checkpoint=self.checkpoint(role), trigger_seconds=trigger,
                available_now=available_now, fingerprint=self.drill, lateness=lateness,
            ),
        )  # fmt: skip

    def query(
        self,
        rows: DataFrame,
        *,
        role: str = "main",
        trigger: float = TRIGGER_SECONDS,
        mode: str = "append",
        write: Callable[[DataFrame, int], None] = deliver,
        sink: str | None = None,
        location: str | None = None,
        keep: bool = False,
    ) -> StreamingQuery:
        """Starts a query of the drill's own under a random name; it writes to the outside, by `write`, or to a `sink`
        of Spark's own, such as noop. `location`: of its checkpoint, where that is not a plain folder. `keep`: restart
        it when it fails."""

        def begin() -> StreamingQuery:
            writer = rows.writeStream
            return (
                (writer.format(sink) if sink is not None else writer.foreachBatch(write))
                .queryName(self.names[role])
                .outputMode(mode)
                .option("checkpointLocation", location or str(self.checkpoint(role)))
                .trigger(processingTime=f"{round(trigger * 1000)} milliseconds")
                .start()
            )

        return self._run(role, begin, keep=keep)

    def _run(self, role: str, begin: Starter, keep: bool = False) -> StreamingQuery:
        query = begin()
        self.kept[role] = Kept(query, begin if keep else None)
        return query

    def checkpoint(self, role: str = "main") -> Path:
        """Checkpoint folder of the query with this role."""
        return self.folder / "checkpoints" / role

    def turn(self) -> None:
        """Checks the queries once: notes failures and restarts supervised queries."""
        for kept in self.kept.values():
            if kept.query.isActive:
                continue
            if not kept.failure_noted:
                kept.failure_noted, kept.due = True, time.time() + RESTART_SECONDS
                if (error := kept.query.exception()) is None:
                    kept.again = None
                    continue
                with (self.folder / "failures.jsonl").open("a") as log:
                    log.write(json.dumps({"at": time.time(), "error": str(error)[:500]}) + "\n")
            if kept.again is not None and time.time() >= kept.due:
                kept.query, kept.failure_noted = kept.again(), False
        for act in self.each_turn:
            act()


def _instrumented(rows: DataFrame, label: str | None = None) -> DataFrame:
    return ledgerops.instrument(rows, event_time="event_time", key="customer_id", name=label)
