"""Batch by batch: for sinks and jobs that need a function on the driver for each batch (Spark's foreachBatch)."""

from collections.abc import Callable
from pathlib import Path

from pyspark.sql import DataFrame
from pyspark.sql.streaming import DataStreamWriter

from ledgerops.checkpoint.batch_log import parse_batch
from ledgerops.ledger.jobs.job import Job

Write = Callable[["DataFrame", int], None]  # the rows of a batch and its number


def by_batch(job: Job, rows: DataFrame, checkpoint: Path, write: Write) -> DataStreamWriter:
    """The writer that hands each batch, empty ones too, to the job's `on_batch` and then to `write`.

    `write` may be given a batch again, after a failure or a restart, as the rows that it had before.
    """

    def each(batch_rows: DataFrame, batch: int) -> None:
        if job.on_batch is not None:
            batch_rows = job.on_batch(batch_rows, late_watermark(checkpoint, batch))
        write(batch_rows, batch)

    return rows.writeStream.foreachBatch(each)


def pass_over(rows: DataFrame) -> None:
    """Processes a batch that is already written, without writing it: its state and watermark are needed."""
    rows.write.format("noop").mode("overwrite").save()


def late_watermark(checkpoint: Path, batch: int) -> float | None:
    """The watermark by which Spark calls a row of `batch` late, in seconds since the epoch; None before there is one.

    That of the batch before: a stateful operator evicts by the batch's own watermark and drops by the one before it
    (SPARK-40925), since what an operator above it sent out must not be late for the next. The offset log of each batch
    holds its own.
    """
    if batch == 0:
        return None
    return parse_batch((checkpoint / "offsets" / str(batch - 1)).read_text("utf-8")).watermark_seconds
