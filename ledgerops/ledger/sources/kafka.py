"""The ledger's tables from Kafka's topics.

How long a broker may be away. Three clocks of Spark's Kafka source decide, and each of their defaults ends within the
two minutes in which a cluster restarts:

- `kafka.default.api.timeout.ms` bounds one question to the broker, in the driver (partitions, heads) and in the tasks
  (where a partition begins). Kafka asks again and again within it. 60 s by default.
- `kafkaConsumer.pollTimeoutMs` bounds how long a task waits for its records. By default 120 s (spark.network.timeout).
  Spark gives a task no second attempt on one machine's cores (local[N]).
- `fetchOffset.numRetries` is how often the driver asks anew when a question has failed for good, an answer such as
  "unknown topic" from a broker that has just begun included. 3 by default, 1 s apart.

With 150 s for the first two an outage of two minutes and the time to reconnect is waited out in a batch as well as
between batches; after that the query fails, since a query that waits for ever looks like one without input. The driver
asks twice, so it gives up after five minutes. `kafka.request.timeout.ms` stays at 30 s: a single request that was lost
on a dead connection is repeated on a new one.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING

from ledgerops.common.kafka import KafkaClient, reach, reason_of
from ledgerops.errors import UserError
from ledgerops.ledger.plan.schemas import REJECTS_TABLE

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

TOPICS = {
    "transactions": "transactions",
    "customers": "customers",
    "debits": "transactions.debits",
    "credits": "transactions.credits",
    "ad_events": "ad_events",
}
OUTAGE_SECONDS = 150
WAITING = {
    "kafka.default.api.timeout.ms": str(1000 * OUTAGE_SECONDS),
    "kafkaConsumer.pollTimeoutMs": str(1000 * OUTAGE_SECONDS),
    "fetchOffset.numRetries": "2",
    "fetchOffset.retryIntervalMs": "1000",
}
# After each poll Spark asks the broker where the partition begins and ends, and Kafka's default is 500 records a poll.
# A poll never has more than was fetched at once: 1 MiB of a partition, about 4,000 transactions.
MAX_POLL_RECORDS = 10_000
ANSWER_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Topics:
    """The cluster, and how the tables are read from it."""

    client: KafkaClient
    prefix: str = ""  # before the name of every topic
    # Spark's options for where a query without a checkpoint begins
    start: Mapping[str, str] = field(default_factory=lambda: read_start("earliest"))
    lossy: bool = False  # go on where records were deleted before they were read

    def of(self, table: str) -> list[str]:
        """The topics that a table is read from."""
        names = TOPICS.values() if table == REJECTS_TABLE else [TOPICS[table]]
        return [self.prefix + name for name in names]


@dataclass(frozen=True, slots=True)
class Cluster:
    """What a broker reports about its cluster and the requested topics."""

    id: str
    topics: Mapping[str, str]  # name -> id; another id under the same name is another topic
    partitions: Mapping[str, int]


def read_start(text: str) -> dict[str, str]:
    """Spark's options for a start at `earliest`, `latest` or an ISO 8601 time; a time without a zone is UTC.

    Raises UserError.
    """
    if text in ("earliest", "latest"):
        return {"startingOffsets": text}
    try:
        moment = datetime.fromisoformat(text)
        milliseconds = round((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000)
    except (ValueError, OverflowError):
        milliseconds = -1
    if milliseconds < 0:
        raise UserError(f"invalid start: {text!r}; write earliest, latest or a time like 2024-03-01T10:00:00Z")
    # a partition that has no record since then begins with the next one that comes
    return {"startingTimestamp": str(milliseconds), "startingOffsetsByTimestampStrategy": "latest"}


def describe_cluster(client: KafkaClient, topics: Collection[str], seconds: float = ANSWER_SECONDS) -> Cluster:
    """Reads the ids of the cluster and of `topics`. Raises UserError: no answer, or a topic that does not exist."""
    from confluent_kafka import KafkaError, KafkaException, TopicCollection

    admin = reach(client, seconds)
    try:
        cluster = admin.list_topics(timeout=seconds).cluster_id
        asked = admin.describe_topics(TopicCollection(sorted(topics)), request_timeout=seconds) if topics else {}
    except KafkaException as error:
        raise UserError(f"cannot describe the topics of {client.servers}: {reason_of(client, error)}") from None
    ids, partitions, unknown = {}, {}, []
    for name, future in asked.items():
        try:
            found = future.result()
        except KafkaException as error:
            if error.args[0].code() != KafkaError.UNKNOWN_TOPIC_OR_PART:
                raise UserError(
                    f"cannot describe topic {name} of {client.servers}: {reason_of(client, error)}"
                ) from None
            unknown.append(name)
        else:
            ids[name], partitions[name] = str(found.topic_id), len(found.partitions)
    if unknown:
        names = ", ".join(sorted(unknown))
        raise UserError(f"no topic {names} at {client.servers}; ledgerops topics creates the ledger's topics")
    return Cluster(str(cluster), ids, partitions)


def open_table(
    spark: SparkSession, topics: Topics, table: str, max_rows_per_trigger: int | None, observation: str
) -> DataFrame:
    """A streaming DataFrame of schemas.TABLES[table]. Records that are no row of it are counted in `observation`.

    Of the table `rejects` it gives what is a row of no table, from all topics.
    """
    from ledgerops.ledger.sources import decoding  # PySpark, which a sender of records does without

    read = partial(_records, spark, topics, max_rows_per_trigger)
    return decoding.open_table(read, table, TOPICS, keyed=True, observation=observation)


def _records(spark: SparkSession, topics: Topics, max_rows_per_trigger: int | None, table: str) -> DataFrame:
    options = {
        **WAITING,
        "kafka.max.poll.records": str(MAX_POLL_RECORDS),
        **topics.client.spark(),
        **topics.start,
        "subscribe": topics.of(table)[0],
        "groupIdPrefix": "ledgerops",
        "includeHeaders": "false",
        "failOnDataLoss": "false" if topics.lossy else "true",
    }
    if max_rows_per_trigger is not None:
        options["maxOffsetsPerTrigger"] = str(max_rows_per_trigger)
    return spark.readStream.format("kafka").options(**options).load().drop("timestampType")
