"""The first and the next offset of Kafka's partitions: the one place where they are read.

confluent-kafka is imported only when a broker is asked.
"""

import time
from collections.abc import Collection, Iterable, Mapping
from concurrent.futures import wait
from dataclasses import dataclass, field
from typing import Any, Literal

from ledgerops.common.kafka import KafkaClient, reach
from ledgerops.errors import UserError

ANSWER_SECONDS = 10.0
RETRY_SECONDS = 0.1
End = Literal["earliest", "latest"]
Partition = tuple[str, int]  # topic and number


@dataclass(slots=True)
class Offsets:
    """What a broker answered for one end of some partitions; a partition without an answer in time is in neither."""

    known: dict[Partition, int] = field(default_factory=dict)
    errors: dict[Partition, Any] = field(default_factory=dict)  # a KafkaError each


def ask_offsets(admin: Any, partitions: Iterable[Partition], ends: Collection[End], seconds: float) -> list[Offsets]:
    """One `Offsets` for each of `ends`, asked at the same time; waits at most `seconds` and never raises. `latest` is
    the offset that the next record of a partition will get, `earliest` that of the first record kept."""
    from confluent_kafka import KafkaException, TopicPartition
    from confluent_kafka.admin import OffsetSpec

    asked = [TopicPartition(topic, number) for topic, number in partitions]
    if not asked:
        return [Offsets() for _ in ends]
    answers = [
        admin.list_offsets({each: getattr(OffsetSpec, end)() for each in asked}, request_timeout=seconds)
        for end in ends
    ]
    wait_for([future for each in answers for future in each.values()], admin, seconds)
    found = []
    for each in answers:
        offsets = Offsets()
        for place, future in each.items():
            try:
                offset = int(future.result(0).offset)
            except TimeoutError:
                continue
            except KafkaException as error:
                offsets.errors[place.topic, place.partition] = error.args[0]
                continue
            if offset >= 0:  # a negative one means that librdkafka does not know it
                offsets.known[place.topic, place.partition] = offset
        found.append(offsets)
    return found


def wait_for(futures: Iterable[Any], admin: Any, seconds: float) -> None:
    """Waits at most `seconds` for answers, then lets the client call its callbacks."""
    pending, limit = set(futures), time.monotonic() + seconds
    while pending and time.monotonic() < limit:
        _, pending = wait(pending, timeout=0.1)
    admin.poll(0)


def read_heads(client: KafkaClient, topics: Mapping[str, int], end: End = "latest") -> dict[tuple[str, str], int]:
    """The offset that the next record of each partition will get, by topic and partition; with "earliest" that of the
    first record that it keeps, above 0 once Kafka has deleted records.

    `topics` are names with their number of partitions. Raises UserError when one cannot be read.
    """
    from confluent_kafka import KafkaError

    partitions = [(topic, number) for topic, count in topics.items() for number in range(count)]
    moving = (  # just after a topic was created: the broker does not know it (_NOENT), or does not lead it yet
        KafkaError._NOENT,
        KafkaError.UNKNOWN_TOPIC_OR_PART,
        KafkaError.NOT_LEADER_FOR_PARTITION,
        KafkaError.LEADER_NOT_AVAILABLE,
        KafkaError.UNKNOWN_LEADER_EPOCH,
        KafkaError.FENCED_LEADER_EPOCH,
    )
    limit = time.monotonic() + ANSWER_SECONDS
    while True:
        # a new client each time: one that was answered "no such topic" keeps that answer
        [found] = ask_offsets(reach(client, ANSWER_SECONDS), partitions, [end], ANSWER_SECONDS)
        if len(found.known) == len(partitions):
            return {(topic, str(number)): offset for (topic, number), offset in found.known.items()}
        fatal = next((error for error in found.errors.values() if error.code() not in moving), None)
        if fatal is not None or time.monotonic() > limit:
            error = fatal or next(iter(found.errors.values()), None)
            reason = "timed out" if error is None else str(error.str()).lower()
            raise UserError(f"cannot read the {end} offsets of the topics of {client.servers}: {reason}") from None
        time.sleep(RETRY_SECONDS)
