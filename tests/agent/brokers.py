"""Queries that read Kafka, as the worker's snapshot holds them, without Spark; and records to read."""

from collections.abc import Callable, Iterator, Mapping

import pytest

from ledgerops.agent.kafka_proxy import BrokerProxy
from ledgerops.common.kafka import KafkaClient, reach
from ledgerops.diagnosis.engine import Diagnoser
from ledgerops.model.records import Observation
from ledgerops.model.spark_progress import format_instant
from ledgerops.runtime.registry import QueryRegistry
from ledgerops.servers.kafka import Kafka
from tests.build import T0, spark_json

Ends = Mapping[str, Mapping[str, int]]


class Queries:
    """`read` is a batch that ended at these offsets; `runs` is what a collector is given."""

    def __init__(self) -> None:
        self.registry = QueryRegistry(Diagnoser)
        self.runs = self.registry.runs
        self.batch = 0

    def read(self, query: str, *sources: Ends, run: str = "run-1", description: str = "KafkaV2[Subscribe[t]]") -> None:
        self.batch += 1
        offsets = ("startOffset", "endOffset", "latestOffset")
        told = [{"description": description, "numInputRows": 1, **dict.fromkeys(offsets, ends)} for ends in sources]
        at = T0 + 2.0 * self.batch
        ids = {"name": query, "id": f"id-{query}", "runId": f"{query}-{run}", "batchId": self.batch}
        data = spark_json(timestamp=format_instant(at), sources=told, **ids)
        self.registry.ingest(Observation(at, "progress", None, data), origin=self)

    def end(self, query: str) -> None:
        run_id = self.registry.queries[query].history.run_id
        self.registry.ingest(Observation(T0 + 2.0 * self.batch + 1, "terminated", query, {"runId": run_id}))


def reading(description: str = "KafkaV2[Subscribe[t]]") -> Queries:
    """The queries of an application with one, `a`, which has read a partition up to 4."""
    queries = Queries()
    queries.read("a", {"t": {"0": 4}}, description=description)
    return queries


def produce(kafka: Kafka, topic: str, counts: Mapping[int, int]) -> None:
    """So many records into each partition, written when this returns."""
    from confluent_kafka import Producer

    producer = Producer(kafka.client.librdkafka())
    for partition, count in counts.items():
        for number in range(count):
            producer.produce(topic, str(number), partition=partition)
    assert producer.flush(30) == 0


def committed(kafka: Kafka, group: str) -> dict[tuple[str, str], int]:
    """The offsets that a group has committed, by topic and partition."""
    from confluent_kafka import ConsumerGroupTopicPartitions

    admin = reach(kafka.client)  # its answers end with it
    [answer] = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)]).values()
    return {(each.topic, str(each.partition)): each.offset for each in answer.result(30).topic_partitions}


_open: list[BrokerProxy] = []


def asks(connect: Callable[[], KafkaClient]) -> BrokerProxy:
    """A broker whose process `closed` ends."""
    _open.append(BrokerProxy(connect))
    return _open[-1]


@pytest.fixture(autouse=True)
def closed() -> Iterator[None]:
    """For modules that import it: no process outlives its test."""
    yield
    while _open:
        _open.pop().close()
