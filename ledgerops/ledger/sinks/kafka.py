"""Kafka topics, through Spark's Kafka sink."""

from concurrent.futures import wait
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from confluent_kafka.admin import NewTopic
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.streaming import DataStreamWriter

from ledgerops.common.kafka import KafkaClient, reach
from ledgerops.ledger.jobs.job import Job
from ledgerops.ledger.sinks.batches import by_batch

TOPIC_PARTITIONS = 5  # of a topic that the sink makes, as many as the ledger's input topics have
ANSWER_SECONDS = 15.0  # a broker that has just answered does so in milliseconds
# the default would cut microseconds and leave out columns that are null
JSON = {"timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX", "timeZone": "UTC", "ignoreNullFields": "false"}


@dataclass(frozen=True)
class KafkaSink:
    """Each row at least once: a batch that is repeated after a failure or a crash is sent again.

    Value: the row as JSON, timestamps as "2024-03-01T10:00:00.123456Z", decimals as numbers. Key: the first column of
    the job's `upsert`, else its `key`; none if the output has no such column. Topic: `prefix` and the value of the
    job's `route`, else the job's name. A reader that wants each row once drops copies by their columns; of an upserted
    key the last record in the topic is the newest, unless one batch holds several rows of it.
    Topics known beforehand are made, with TOPIC_PARTITIONS partitions, if they are missing and the broker lets us; else
    it is up to the broker whether it makes them.
    """

    client: KafkaClient
    prefix: str = ""
    remembers: ClassVar[bool] = False

    def __str__(self) -> str:
        return f"Kafka at {self.client.servers}"

    def last_batch(self, job: Job, checkpoint: Path) -> int | None:
        """None: a topic does not record which batches were written."""
        return None

    def write(self, job: Job, rows: DataFrame, checkpoint: Path) -> DataStreamWriter:
        """Creates missing topics and returns the writer of `rows`. Raises UserError if the broker cannot be reached."""
        self._make_topics(job)
        if job.on_batch is None:
            return self._records(job, rows).writeStream.format("kafka").options(**self.client.spark())

        def send(batch_rows: DataFrame, batch: int) -> None:
            self._records(job, batch_rows).write.format("kafka").options(**self.client.spark()).save()

        return by_batch(job, rows, checkpoint, send)

    def _records(self, job: Job, rows: DataFrame) -> DataFrame:
        key = next((name for name in (*job.upsert[:1], job.key) if name in rows.columns), None)
        topic = F.lit(job.name) if job.route is None else F.coalesce(F.col(job.route), F.lit(job.name))
        return rows.select(
            F.lit(None).cast("string").alias("key") if key is None else F.col(key).cast("string").alias("key"),
            F.to_json(F.struct(*(name for name in rows.columns if name != job.route)), JSON).alias("value"),
            F.concat(F.lit(self.prefix), topic).alias("topic"),
        )

    def _make_topics(self, job: Job) -> None:
        admin = reach(self.client)
        wanted = {self.prefix + name for name in (job.routes if job.route else (job.name,))}
        missing = sorted(wanted - set(admin.list_topics(timeout=ANSWER_SECONDS).topics))
        if missing:  # one may be made by another meanwhile, or not be allowed: the broker may make it itself
            wait(admin.create_topics([NewTopic(name, TOPIC_PARTITIONS) for name in missing]).values())
