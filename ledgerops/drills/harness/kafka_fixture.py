"""A real broker for a drill, with a proxy before it, topics, and producers that send load plans.

The driver connects through the proxy; the producers do not, unless `proxied`.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ledgerops.common.kafka import KafkaClient, reach
from ledgerops.common.kafka_offsets import read_heads
from ledgerops.common.shutdown import Stop
from ledgerops.drills.harness.proxy import Proxy
from ledgerops.errors import UserError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from ledgerops.drills.harness.injector import Injector
    from ledgerops.drills.harness.target_app import TargetApp
    from ledgerops.ledger.plan.record_stream import Table
    from ledgerops.servers.kafka import Kafka

MAX_LEADER_ELECTION_SECONDS = 20.0  # for new partitions, on a busy machine
PLAN = """
seed: 11
start: now
phases: [{shape: constant, rate: 200}]
"""


class Producer:
    """Sends a load plan to a topic by its schedule, in a thread of its own, until it is stopped."""

    def __init__(self, client: KafkaClient, topic: str, plan: str, table: Table = "transactions") -> None:
        from ledgerops.ledger.plan.plan import parse_plan
        from ledgerops.ledger.plan.record_stream import PlanStream
        from ledgerops.load.generator.kafka import KafkaTarget

        self._stop = Stop()
        stream = PlanStream(parse_plan(plan, f"{topic}.yaml"), round(time.time(), 3), table)
        self._target = KafkaTarget(client, topic, stream.partitions, self._stop.wait)
        self._thread = threading.Thread(target=self._send, args=(stream,), name=f"producer of {topic}", daemon=True)
        self._thread.start()

    def _send(self, stream: Any) -> None:
        from ledgerops.load.generator.pacer import produce

        produce(stream, self._target, records=None, at_once=False, wait=self._stop.wait)

    def stop(self) -> None:
        """Ends the load; waiting records are sent if the broker is up."""
        self._stop.ask("over")
        self._thread.join()
        self._target.close()


@dataclass
class BrokerFixture:
    """The broker of one drill, its proxy and the producers by topic."""

    kafka: Kafka
    proxy: Proxy
    producers: dict[str, Producer] = field(default_factory=dict)

    @property
    def through(self) -> KafkaClient:
        """A client that connects through the proxy, like the driver."""
        return KafkaClient(f"127.0.0.1:{self.proxy.port}")

    def produce(self, topic: str, plan: str = PLAN, table: Table = "transactions", proxied: bool = False) -> None:
        """Starts a producer for the topic, in addition to those it has."""
        client = self.through if proxied else self.kafka.client
        self.producers[f"{topic} {len(self.producers)}" if topic in self.producers else topic] = Producer(
            client, topic, plan, table
        )

    def delete_read_and_unread(self, topic: str) -> dict[int, int]:
        """Deletes all that a topic holds now, as its retention would. Gives the first offset left, by partition."""
        from confluent_kafka import TopicPartition

        admin = reach(self.kafka.client)
        count = len(admin.list_topics(topic, timeout=10).topics[topic].partitions)
        heads = read_heads(self.kafka.client, {topic: count})
        done = admin.delete_records([TopicPartition(topic, int(number), head) for (_, number), head in heads.items()])
        return {each.partition: found.result(10).low_watermark for each, found in done.items()}

    def close(self) -> None:
        """Stops the producers, the broker and the proxy."""
        for producer in self.producers.values():
            producer.stop()
        self.kafka.__exit__()
        self.proxy.__exit__()


def open_broker(
    injector: Injector,
    topics: Mapping[str, int],
    config: Mapping[str, str] | None = None,
    load: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """Starts a broker. Returns what a drill's `prepare` returns: the settings of a driver that reads this broker.

    `topics`: number of partitions by name; `config`: of all topics; `load`: plan by topic, started at once. The broker
    is in `injector.held["broker"]` until the end.
    """
    from confluent_kafka.admin import NewTopic

    from ledgerops.servers import jars
    from ledgerops.servers.kafka import Kafka

    connector = ",".join(map(str, jars.connector_jars()))
    proxy = Proxy(seed=injector.seed)
    kafka = Kafka(injector.folder / "kafka", proxied=proxy.port)
    proxy.target = kafka.behind or 0
    broker = BrokerFixture(kafka, proxy)
    injector.held["broker"] = broker
    proxy.__enter__()
    injector.closing.append(broker.close)
    kafka.__enter__()
    admin = reach(kafka.client)
    new = [NewTopic(name, count, 1, config=dict(config or {})) for name, count in topics.items()]
    for done in admin.create_topics(new).values():
        done.result(30)
    _lead(kafka.client, topics)
    for topic, plan in (load or {}).items():
        broker.produce(topic, plan)
    return {
        "jars": connector,
        "kafka": broker.through.servers,
        "watch": {"kafka_servers": broker.through.servers},
    }


def _lead(client: KafkaClient, topics: Mapping[str, int]) -> None:
    """Waits until new topics can be used: the broker leads their partitions a moment after they were made."""
    limit = time.monotonic() + MAX_LEADER_ELECTION_SECONDS
    while True:
        try:
            read_heads(client, topics)
            return
        except UserError:
            if time.monotonic() > limit:
                raise
            time.sleep(0.1)


def broker_of(injector: Injector) -> BrokerFixture:
    """The broker that `open_broker` opened. Raises UserError without one."""
    found = injector.held.get("broker")
    if not isinstance(found, BrokerFixture):
        raise UserError(f"drill {injector.drill} has no broker")
    return found


def rows(
    app: TargetApp,
    table: Table = "transactions",
    *,
    prefix: str = "",
    start: str = "latest",
    max_rows: int | None = None,
    lossy: bool = False,
) -> DataFrame:
    """A stream from the broker, as `ledgerops run --source kafka` reads it."""
    import ledgerops
    from ledgerops.drills.harness.target_app import KEYS
    from ledgerops.ledger.sources import kafka

    client = KafkaClient(app.settings["kafka"])
    topics = kafka.Topics(client, prefix, kafka.Start(start), lossy)
    found = kafka.open_table(app.spark, topics, table, max_rows, f"{prefix}{table}_rejects")
    if table not in KEYS:
        return found
    return ledgerops.instrument(found, event_time="event_time", key=KEYS[table])
