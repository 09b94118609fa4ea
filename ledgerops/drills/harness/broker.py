"""A real broker for a drill, at best with a proxy before it, its topics, and producers that send load plans."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import get_args

from confluent_kafka import TopicPartition
from confluent_kafka.admin import NewTopic

from ledgerops.common.kafka import KafkaClient, reach
from ledgerops.common.kafka_offsets import read_heads
from ledgerops.common.shutdown import Stop
from ledgerops.drills.harness.proxy import Proxy
from ledgerops.errors import UserError
from ledgerops.ledger.plan.plan import parse_plan
from ledgerops.ledger.plan.record_stream import PlanStream, Table
from ledgerops.load.generator.kafka import KafkaTarget
from ledgerops.load.generator.pacer import produce
from ledgerops.servers.kafka import Kafka

MAX_CREATE_SECONDS = 240.0  # of topics, on a machine that is busy with other things
MAX_LEADER_ELECTION_SECONDS = 20.0  # for new partitions, on a busy machine


class Producer:
    """Sends a load plan to a topic by its schedule, in a thread of its own, until it is stopped. The topic's name ends
    with that of the table whose rows it sends."""

    def __init__(self, client: KafkaClient, topic: str, plan: str) -> None:
        self._stop = Stop()
        table: Table = next(name for name in get_args(Table) if topic.endswith(name))
        stream = PlanStream(parse_plan(plan, f"{topic}.yaml"), round(time.time(), 3), table)
        self._target = KafkaTarget(client, topic, stream.partitions, self._stop.wait)
        send = partial(produce, stream, self._target, records=None, at_once=False, wait=self._stop.wait)
        self._thread = threading.Thread(target=send, name=f"producer of {topic}", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Ends the load; waiting records are sent if the broker is up."""
        self._stop.ask("over")
        self._thread.join()
        self._target.close()


class Broker:
    """A broker while its context lasts. With `proxied` the driver connects through the proxy; producers do not, unless
    they are told to."""

    def __init__(self, folder: Path, proxied: bool, seed: int = 1) -> None:
        self.proxy = Proxy(seed=seed)
        self.kafka = Kafka(folder, proxied=self.proxy.port) if proxied else Kafka(folder)
        self.proxy.target = self.kafka.behind or 0
        self.through = KafkaClient(f"127.0.0.1:{self.proxy.port}") if proxied else self.kafka.client
        self.producers: list[Producer] = []
        self._opened = ExitStack()

    def __enter__(self) -> Broker:
        self._opened.enter_context(self.proxy)
        self._opened.enter_context(self.kafka)
        return self

    def __exit__(self, *_: object) -> None:
        self.stop_producers()
        self._opened.close()

    def create(self, topics: Mapping[str, int], conf: Mapping[str, str]) -> None:
        """Makes topics with so many partitions, and waits until a leader serves them."""
        admin = reach(self.kafka.client)  # it gives up its requests when nothing refers to it
        new = [NewTopic(name, count, 1, config=dict(conf)) for name, count in topics.items()]
        for done in admin.create_topics(new, request_timeout=MAX_CREATE_SECONDS / 2).values():
            done.result(MAX_CREATE_SECONDS)
        limit = time.monotonic() + MAX_LEADER_ELECTION_SECONDS
        while True:
            try:
                read_heads(self.kafka.client, topics)
                return
            except UserError:
                if time.monotonic() > limit:
                    raise
                time.sleep(0.1)

    def produce(self, topic: str, plan: str, proxied: bool = False) -> Producer:
        """Starts a producer for the topic, in addition to those that it has."""
        self.producers.append(Producer(self.through if proxied else self.kafka.client, topic, plan))
        return self.producers[-1]

    def stop_producers(self) -> None:
        """Ends all loads."""
        while self.producers:
            self.producers.pop().stop()

    def delete_read_and_unread(self, topic: str) -> dict[int, int]:
        """Deletes all that a topic holds now, as its retention would. Gives the first offset left, by partition."""
        admin = reach(self.kafka.client)
        count = len(admin.list_topics(topic, timeout=10).topics[topic].partitions)
        heads = read_heads(self.kafka.client, {topic: count})
        done = admin.delete_records([TopicPartition(topic, int(number), head) for (_, number), head in heads.items()])
        return {place.partition: found.result(10).low_watermark for place, found in done.items()}
