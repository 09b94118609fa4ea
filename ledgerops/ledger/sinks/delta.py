"""A Delta table in a folder of this machine."""

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from pyspark.sql import DataFrame
from pyspark.sql.streaming import DataStreamWriter

from ledgerops.checkpoint.batch_log import BatchLog
from ledgerops.errors import UserError
from ledgerops.ledger.jobs.job import Job
from ledgerops.ledger.sinks import delta_files

CONF = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.databricks.delta.snapshotPartitions": "2",  # of small tables; its default of 50 takes seconds on two cores
}


@dataclass(frozen=True)
class DeltaSink:
    """Each row exactly once: Delta notes in each commit which batch of which query it is. For jobs that append."""

    folder: Path
    remembers: ClassVar[bool] = True

    def __str__(self) -> str:
        return str(self.folder)

    def last_batch(self, job: Job, checkpoint: Path) -> int | None:
        """Number of the newest batch that the query of the checkpoint has committed; None if there is none."""
        query = BatchLog(checkpoint).query_id
        return None if query is None else delta_files.last_batch(self.folder, query)

    def write(self, job: Job, rows: DataFrame, checkpoint: Path) -> DataStreamWriter:
        """Delta's own streaming sink."""
        check_appends(job)
        writer = rows.writeStream.format("delta").option("path", str(self.folder))
        return writer if job.route is None else writer.partitionBy(job.route)

    def prepare(self, rows: DataFrame) -> None:
        """Makes the table, empty, where there is none: a query that reads it must find its columns."""
        if not (self.folder / delta_files.LOG).is_dir():
            empty = rows.sparkSession.createDataFrame([], rows.schema)
            empty.write.format("delta").mode("append").save(str(self.folder))


def check_appends(job: Job) -> None:
    """Raises UserError for a job that does more than add rows."""
    if job.upsert or job.on_batch is not None or job.output_mode != "append":
        raise UserError(f"{job.name} changes rows that it has written, and --sink delta only adds rows; leave it out")
