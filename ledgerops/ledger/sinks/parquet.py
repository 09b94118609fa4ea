"""Parquet files in a folder of this machine."""

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from pyspark.sql import DataFrame
from pyspark.sql.streaming import DataStreamWriter

from ledgerops.ledger.jobs.job import Job
from ledgerops.ledger.sinks.batches import by_batch, pass_over
from ledgerops.ledger.sinks.committed import batch_folder, last_batch


@dataclass(frozen=True)
class ParquetSink:
    """Each row exactly once, for readers that go by committed.committed_files.

    Append jobs write through Spark's file sink, whose log names the files of each batch. Jobs that upsert, update or
    look at their batches get a folder `batch=N` for each, which appears whole or not at all; a batch whose folder is
    there is not written again. Of an upserted key the row of the newest batch counts. With `route`, files lie in a
    folder `COLUMN=VALUE`.
    """

    folder: Path
    remembers: ClassVar[bool] = True

    def __str__(self) -> str:
        return str(self.folder)

    def last_batch(self, job: Job, checkpoint: Path) -> int | None:
        """Number of the newest batch committed to the folder; None if there is none."""
        return last_batch(self.folder)

    def write(self, job: Job, rows: DataFrame, checkpoint: Path) -> DataStreamWriter:
        """The writer of `rows`: Spark's file sink, or one folder for each batch where the job needs it."""
        if job.upsert or job.on_batch is not None or job.output_mode != "append":
            return by_batch(job, rows, checkpoint, lambda batch_rows, batch: self.write_batch(job, batch_rows, batch))
        writer = rows.writeStream.format("parquet").option("path", str(self.folder))
        return writer if job.route is None else writer.partitionBy(job.route)

    def write_batch(self, job: Job, rows: DataFrame, batch: int) -> None:
        """Writes one batch of a job that is written batch by batch; nothing if its folder is there."""
        whole = batch_folder(self.folder, batch)
        if whole.exists():
            pass_over(rows)
            return
        part = whole.with_name(f".{whole.name}")  # Spark and others read no folder with a leading dot
        shutil.rmtree(part, ignore_errors=True)
        writer = rows.write.mode("overwrite")
        (writer if job.route is None else writer.partitionBy(job.route)).parquet(str(part))
        part.rename(whole)
