"""Topics on a real broker, for tests."""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from tests.programs import until

if TYPE_CHECKING:
    from confluent_kafka.admin import NewTopic

    from ledgerops.common.kafka import KafkaClient

READ_SECONDS = 120


def make(admin: Any, *topics: NewTopic) -> None:
    """Makes them. The controller says so before the broker knows them, and it knows them before they have leaders."""
    for done in admin.create_topics(list(topics), request_timeout=60).values():
        done.result(60)
    for new in topics:
        until(lambda new=new: _led(admin, new), 60, f"leaders of {new.topic}")


def _led(admin: Any, new: NewTopic) -> bool:
    known = admin.list_topics(new.topic, timeout=60).topics[new.topic]
    return sum(each.leader >= 0 for each in known.partitions.values()) == new.num_partitions


def read(servers: str, topic: str, partitions: int = 5) -> dict[int, list[tuple[bytes | None, bytes | None]]]:
    """Key and value of every record of a topic, by partition, in order."""
    from confluent_kafka import Consumer, KafkaException, TopicPartition

    consumer = Consumer({"bootstrap.servers": servers, "group.id": "test", "enable.auto.commit": False})
    ends: dict[int, int] = {}
    limit = time.monotonic() + READ_SECONDS
    while len(ends) < partitions:  # a broker that has just begun leads nothing yet
        try:
            ends[len(ends)] = consumer.get_watermark_offsets(TopicPartition(topic, len(ends)), timeout=10)[1]
        except KafkaException:
            assert time.monotonic() < limit
    consumer.assign([TopicPartition(topic, partition, 0) for partition in ends])
    found = defaultdict(list)
    while sum(map(len, found.values())) < sum(ends.values()):
        assert time.monotonic() < limit, f"read {sum(map(len, found.values()))} of {sum(ends.values())}"
        for message in consumer.consume(10_000, timeout=0.5):
            assert message.error() is None
            found[message.partition()].append((message.key(), message.value()))
    consumer.close()
    return found


@contextmanager
def writing(client: KafkaClient, topic: str, value: bytes) -> Iterator[None]:
    """A producer that never rests within the block; what it writes while the broker is away is written later."""
    from confluent_kafka import Producer

    producer, over = Producer(client.librdkafka(log_level=0)), threading.Event()

    def write() -> None:
        while not over.wait(0.1):
            producer.produce(topic, value)
            producer.poll(0)

    thread = threading.Thread(target=write)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
        producer.purge()
        producer.flush(5)
