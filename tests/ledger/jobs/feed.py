"""Bounded input for a job: one Parquet file a micro-batch, in a given order, and what the job made of them."""

from __future__ import annotations

import datetime
import os
from collections.abc import Iterable, Mapping
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from ledgerops.ledger.jobs.job import Job
from ledgerops.ledger.plan.arrow import TRANSACTIONS
from ledgerops.ledger.plan.schemas import TABLES
from ledgerops.ledger.run.start import start
from ledgerops.ledger.sinks import ParquetSink, Sink
from ledgerops.ledger.sinks.committed import committed_files
from ledgerops.ledger.sources import ads
from ledgerops.ledger.sources.customers import CUSTOMERS_ARROW

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Rows = list[dict[str, Any]]
Progress = list[dict[str, Any]]  # of each batch, as Spark says it
ARROW = dict.fromkeys(("transactions", "debits", "credits"), TRANSACTIONS)
ARROW |= {"ad_events": ads.SCHEMA, "customers": CUSTOMERS_ARROW}


def instant(text: str) -> datetime.datetime:
    """`HH:MM[:SS]` on the first of March 2024, or an ISO date and time; UTC."""
    return datetime.datetime.fromisoformat(text if "-" in text else f"2024-03-01T{text}").replace(tzinfo=datetime.UTC)


def transaction(transaction_id: str, event_time: str, customer_id: str = "C1", **other: Any) -> dict[str, Any]:
    """A transaction of which only these columns matter to the case."""
    return {
        "transaction_id": transaction_id,
        "account_id": "A1",
        "customer_id": customer_id,
        "event_time": instant(event_time),
        "type": "Credit",
        "operation": None,
        "amount": Decimal("10.00"),
        "balance": Decimal("0.00"),
        **other,
    }


def customer(customer_id: str, last: str = "Smith", updated_at: str = "00:00") -> dict[str, Any]:
    """A customer of which only these columns matter to the case."""
    given = {"customer_id": customer_id, "last": last, "updated_at": instant(updated_at)}
    return {**dict.fromkeys(ARROW["customers"].names), **given}


class Feed:
    """The input, checkpoint and output folders of one job in `folder`."""

    def __init__(self, spark: SparkSession, job: Job, folder: Path) -> None:
        self.spark, self.job, self.folder = spark, job, folder
        self.output = folder / "output"
        self.checkpoint = folder / "checkpoints" / job.name
        self._files = 0
        for name in job.inputs:
            (folder / name).mkdir(parents=True, exist_ok=True)

    def add(self, *batches: Iterable[Mapping[str, Any]], name: str = "transactions") -> None:
        """Adds files, to be read one a batch in this order."""
        for batch in batches:
            self.add_table(pa.Table.from_pylist([dict(row) for row in batch], schema=ARROW[name]), name)

    def add_table(self, table: pa.Table, name: str = "transactions") -> None:
        self._files += 1
        file = self.folder / name / f"{self._files:05}.parquet"
        part = file.with_name(f".{file.name}")  # a query at work sees it whole or not at all
        pq.write_table(table, part)
        # Spark reads files in the order of their modification times
        os.utime(part, (1_700_000_000 + self._files, 1_700_000_000 + self._files))
        part.rename(file)

    def inputs(self) -> dict[str, DataFrame]:
        reader = self.spark.readStream.option("maxFilesPerTrigger", 1)
        return {name: reader.schema(TABLES[name]).parquet(str(self.folder / name)) for name in self.job.inputs}

    def run(self, sink: Sink | None = None, **options: Any) -> Progress:
        """Works off what is there on the same checkpoint, then says what was done in each batch (Spark's progress)."""
        options |= {"sink": sink or ParquetSink(self.output), "checkpoint": self.checkpoint}
        query = start(self.job, self.inputs(), available_now=True, **options)
        try:
            assert query.awaitTermination(120), "the query has not ended in time"
            return [dict(progress) for progress in query.recentProgress]
        finally:
            query.stop()

    def work(self, *batches: Iterable[Mapping[str, Any]], name: str = "transactions", **options: Any) -> Progress:
        """Adds files, and works off what is there."""
        self.add(*batches, name=name)
        return self.run(**options)

    def run_each(self, runs: Iterable[Iterable[Rows]], repeat: bool = False, **options: Any) -> Progress:
        """Adds the batches of each run, and works them off before those of the next are there. With `repeat` each run
        begins with the newest batch of the one before it."""
        progress = []
        for number, run in enumerate(runs):
            if repeat and number:
                uncommit(self.checkpoint)
            progress += self.work(*run, **options)
        return progress

    def rows(self, columns: str = "*") -> list[tuple[Any, ...]]:
        """The committed rows, sorted."""
        return read(self.output, columns)


def uncommit(checkpoint: Path) -> None:
    """As if the driver had been killed after the newest batch was written, before Spark noted that it was."""
    logs = [file for file in (checkpoint / "commits").iterdir() if file.name.isdigit()]
    newest = max(logs, key=lambda file: int(file.name))
    newest.unlink()
    newest.with_name(f".{newest.name}.crc").unlink(missing_ok=True)


def dropped(progress: Iterable[Mapping[str, Any]]) -> int:
    """The number of rows that Spark says it dropped as late."""
    return sum(operator["numRowsDroppedByWatermark"] for one in progress for operator in one["stateOperators"])


def read(output: Path, columns: str = "*") -> list[tuple[Any, ...]]:
    files = [str(file) for file in committed_files(output)]
    with duckdb.connect() as db:
        db.execute("SET TimeZone = 'UTC'")
        return db.execute(f"SELECT {columns} FROM read_parquet(?) ORDER BY ALL", [files]).fetchall()
