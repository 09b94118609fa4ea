"""Topics on a real broker, for tests."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from tests.programs import until

if TYPE_CHECKING:
    from confluent_kafka.admin import NewTopic

    from ledgerops.common.kafka import KafkaClient


def make(admin: Any, *topics: NewTopic) -> None:
    """Makes them. The controller says so before the broker knows them, and it knows them before they have leaders."""
    for done in admin.create_topics(list(topics), request_timeout=60).values():
        done.result(60)
    for new in topics:
        until(lambda new=new: _led(admin, new), 60, f"leaders of {new.topic}")


def _led(admin: Any, new: NewTopic) -> bool:
    known = admin.list_topics(new.topic, timeout=60).topics[new.topic]
    return sum(each.leader >= 0 for each in known.partitions.values()) == new.num_partitions


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
