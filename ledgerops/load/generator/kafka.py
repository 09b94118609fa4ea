"""Records to a Kafka topic, each acknowledged by all replicas, in order, once.

The producer is idempotent and never gives up: while the broker is away it holds records back, then blocks the sender,
and goes on where it was. Only what the broker refuses for good (too large, not allowed, no such topic) is refused.
"""

import time
from collections.abc import Callable, Sequence
from typing import Any

from confluent_kafka import TIMESTAMP_LOG_APPEND_TIME, KafkaError, KafkaException, Producer

from ledgerops.common.format import counted
from ledgerops.common.kafka import KafkaClient, reason_of
from ledgerops.common.kafka_offsets import read_heads
from ledgerops.errors import UserError
from ledgerops.ledger.plan.poison import REASONS
from ledgerops.ledger.sources import kafka
from ledgerops.load.generator.latency_samples import LatencySample
from ledgerops.load.generator.records import Records

# What may wait in the producer: two seconds of 100,000 records, so that memory stays bounded while a broker is away.
HELD_RECORDS = 200_000
HELD_KBYTES = 256 * 1024
SETTINGS = {
    "enable.idempotence": True,
    "acks": "all",
    "message.timeout.ms": 0,  # a record waits for as long as it takes
    "linger.ms": 10,
    "compression.type": "lz4",
    "batch.num.messages": 20_000,
    "batch.size": 1_000_000,
    "queue.buffering.max.messages": HELD_RECORDS,
    "queue.buffering.max.kbytes": HELD_KBYTES,
    "log_level": 0,  # errors are reported by error_cb; librdkafka's own lines would go to stderr
}
ANSWER_SECONDS = 8.0  # of the broker at the start
CLOSE_SECONDS = 60.0  # for the broker to come back when the load is over


class KafkaTarget:
    """`wait` says whether somebody asked to stop, which ends a wait for a broker that is away."""

    kinds: Sequence[str] = REASONS

    def __init__(
        self,
        client: KafkaClient,
        topic: str,
        partitions: int,
        wait: Callable[[float], bool] = lambda seconds: False,
        say: Callable[[str], None] = lambda text: None,
        checked: bool = True,
    ) -> None:
        """Raises UserError when no broker answers in ten seconds or the topic cannot hold these partitions.

        Not `checked`: the topic is known to be there, to be empty and to have them.
        """
        if checked:
            _check(client, topic, partitions, say)
        self.acknowledged = 0
        self.refused = 0
        self.problem: str | None = None
        self._client, self._topic, self._wait, self._say = client, topic, wait, say
        self._away, self._before = False, 0  # whether no broker answers, and what was acknowledged until then
        try:
            self._producer = Producer(client.librdkafka(**SETTINGS, error_cb=self._on_error))
        except KafkaException as error:
            raise UserError(f"the Kafka client rejects the options: {reason_of(client, error)}") from None

    def send(self, records: Records, start: int, end: int) -> int:
        """Hands over records [start, end); returns the first place not taken: `end`, or less if the queue is full."""
        place = start
        for sample in records.samples:
            if start <= sample.place < end and not self.refused:
                place = self._produce(records, place, sample.place, self._delivered)
                if place == sample.place:
                    sample.created = time.time()
                    place = self._produce(records, place, place + 1, self._sampled(sample))
                if place <= sample.place:
                    return place
        return self._produce(records, place, end, self._delivered)

    def serve(self) -> None:
        """Handles the acknowledgements that have arrived, and reports when the broker is back. Does not wait."""
        self._producer.poll(0)
        self._note_recovery()

    @property
    def waiting(self) -> int:
        """Number of records that are neither acknowledged nor refused yet."""
        return len(self._producer)

    def _produce(self, records: Records, start: int, end: int, on_delivery: Callable[[Any, Any], None]) -> int:
        """Returns the first place that it did not take: the queue is full, because the broker is slow, or away."""
        produce, topic = self._producer.produce, self._topic
        keys, values, partitions = records.keys, records.values, records.partitions
        place = start
        try:
            # one loop without a test inside: at 150,000 records a second each costs 7 microseconds at most
            while place < end:
                produce(topic, values[place], keys[place], partitions[place], on_delivery)
                place += 1
        except BufferError:
            pass
        except KafkaException as error:
            self._refuse(error.args[0])
        return place

    def close(self) -> None:
        """Waits up to CLOSE_SECONDS for acknowledgements; records still open then are dropped and set `problem`."""
        limit = time.monotonic() + CLOSE_SECONDS
        while len(self._producer) and time.monotonic() < limit:
            self._producer.flush(0.5)
            self._note_recovery()
            if self._away and self._wait(0.0):
                break
        left = len(self._producer)
        if left:
            # purged records come back as refused: those in flight may have arrived, so their fate is unknown
            self._producer.purge()
            self._producer.flush(1.0)
            self.problem = f"no broker answered at the end; it is not known whether {left:,} records arrived"

    def _delivered(self, error: Any, message: Any) -> None:
        if error is None:
            self.acknowledged += 1
        else:
            self._refuse(error)

    def _sampled(self, sample: LatencySample) -> Callable[[Any, Any], None]:
        def on_delivery(error: Any, message: Any) -> None:
            self._delivered(error, message)
            if error is None:
                kind, at = message.timestamp()
                sample.sampler.keep(sample, time.time(), at / 1000 if kind == TIMESTAMP_LOG_APPEND_TIME else None)

        return on_delivery

    def _note_recovery(self) -> None:
        if self._away and self.acknowledged > self._before:
            self._away = False
            self._say("the broker is back")

    def _refuse(self, error: Any) -> None:
        self.refused += 1
        self.problem = self.problem or reason_of(self._client, error)

    def _on_error(self, error: Any) -> None:
        """Handles an error of the connection. librdkafka repeats what it can."""
        if error.code() == KafkaError._ALL_BROKERS_DOWN and not self._away:
            self._away, self._before = True, self.acknowledged
            self._say(f"no broker answers at {self._client.servers}; waiting for it")


def _check(client: KafkaClient, topic: str, partitions: int, say: Callable[[str], None]) -> None:
    cluster = kafka.describe_cluster(client, [topic], ANSWER_SECONDS)
    if cluster.partitions[topic] < partitions:
        raise UserError(
            f"topic {topic} has {counted(cluster.partitions[topic], 'partition')} and the load {partitions}; "
            "create it again with that number, or change partitions in the plan"
        )
    held = sum(read_heads(client, cluster.partitions).values())
    if held:
        say(
            f"topic {topic} is not empty ({counted(held, 'record')} so far): "
            "the manifest counts only what this load adds"
        )
