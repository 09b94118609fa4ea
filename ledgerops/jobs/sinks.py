"""Where a job's rows go. A sink says how a query writes, and whether a checkpoint and what is written belong together.

Jobs do not know their sink: they say which columns identify a row (`upsert`), which column names its output (`route`),
and what is to be done with a batch before it is written (`on_batch`).
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from ledgerops.jobs.job import Job
from ledgerops.jobs.outputs import last_batch

if TYPE_CHECKING:
    from pyspark.sql.streaming import DataStreamWriter


class Sink(Protocol):
    """One kind of destination, for any job."""

    def last_batch(self, job: Job) -> int | None:
        """The newest batch of `job` that was written; None before the first, or where the sink cannot tell."""
        ...

    def write(self, job: Job, writer: DataStreamWriter) -> DataStreamWriter:
        """`writer` with format, options or function set."""
        ...


@dataclass(frozen=True)
class ParquetSink:
    """Spark's file sink in `folder`: each row exactly once, for readers that go by its commit log."""

    folder: Path

    def __str__(self) -> str:
        return str(self.folder)

    def last_batch(self, job: Job) -> int | None:
        return last_batch(self.folder)

    def write(self, job: Job, writer: DataStreamWriter) -> DataStreamWriter:
        return writer.format("parquet").option("path", str(self.folder))
