"""The program that asks the Kafka broker, in a process of its own that `kafka_proxy` starts.

librdkafka is native code. When it crashes, or a client never reconnects after a broker's restart (both seen with
version 2.16), this process ends and not the driver with the job. It reads one JSON object a line from stdin, the first
with the client's settings, and answers each question with a line. It ends when stdin does.
"""

import json
import os
import sys
import time
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, BinaryIO

from ledgerops.common.kafka import KafkaClient, reason_of
from ledgerops.common.kafka_offsets import End, Offsets, ask_offsets, wait_for
from ledgerops.errors import UserError

RECONNECT_MS = 1000  # with librdkafka's 10 s a broker that is back would go unnoticed for as long
CONNECT_SECONDS = 4.0
ENDS: tuple[End, ...] = ("latest", "earliest")
NO_ID = "AAAAAAAAAAAAAAAAAAAAAA"  # 16 bytes of zero, in base 64: Kafka before 2.8


class OffsetClient:
    """An admin client of confluent-kafka that gives up in time and is quiet. Raises UserError without the library."""

    def __init__(self, client: KafkaClient) -> None:
        try:
            from confluent_kafka import KafkaException
            from confluent_kafka.admin import AdminClient
        except ImportError:
            raise UserError("kafka_servers needs confluent-kafka: install ledgerops[kafka]") from None
        self._client = client
        self._reasons: deque[str] = deque(maxlen=10)
        on_error = {"error_cb": lambda error: self._reasons.append(str(error.str()))}
        quiet = {"log_level": 0, "client.id": "ledgerops", **on_error}
        limits = {"socket.timeout.ms": int(1000 * CONNECT_SECONDS), "reconnect.backoff.max.ms": RECONNECT_MS}
        try:
            self._admin = AdminClient(client.librdkafka(**quiet, **limits))
        except KafkaException as error:
            raise UserError(f"cannot read offsets from {client.servers}: {reason_of(client, error)}") from None

    def answer(self, question: Mapping[str, Any]) -> dict[str, Any]:
        """The answer to a question, whose `ask` is "offsets" or "commit". Raises KeyError when a field is missing."""
        if question["ask"] == "offsets":
            return self._offsets(question)
        return self._commit(question)

    def _offsets(self, question: Mapping[str, Any]) -> dict[str, Any]:
        """Head and earliest offset of each partition, what the broker refuses or cannot say now, as without a leader,
        and settings of topics."""
        from confluent_kafka import KafkaError

        seconds, began = float(question["seconds"]), time.monotonic()
        asked = [(topic, partition) for topic, partition in question["partitions"]]
        newest, oldest = ask_offsets(self._admin, asked, ENDS, seconds)
        unknown = KafkaError._UNKNOWN_PARTITION
        if grown := {topic for (topic, _), error in newest.errors.items() if error.code() == unknown}:
            self._renew(grown, began + seconds)
            newest, oldest = ask_offsets(self._admin, asked, ENDS, max(0.1, began + seconds - time.monotonic()))
        took = round(time.monotonic() - began, 4)
        refused, withheld = (_errors(newest, final) + _errors(oldest, final) for final in (True, False))
        latest, earliest = _by_topic(newest), _by_topic(oldest)
        found = {"latest": latest, "earliest": earliest, "refused": refused, "reason": self._reason(), "seconds": took}
        found["withheld"] = withheld
        topics = [topic for topic in question["settings"] if topic in latest]
        found["ids"] = self._ids(latest, max(0.1, began + seconds - time.monotonic())) if latest else {}
        return {**found, "settings": self._settings(topics, seconds) if topics else {}}

    def _renew(self, topics: Iterable[str], until: float) -> None:
        """Reads anew, until then, how many partitions the topics have: librdkafka remembers that for minutes."""
        from confluent_kafka import KafkaException

        for topic in topics:
            with suppress(KafkaException):
                self._admin.list_topics(topic, timeout=max(0.1, until - time.monotonic()))

    def _ids(self, topics: Iterable[str], seconds: float) -> dict[str, str]:
        """What tells a topic from a later one of its name; none of a topic whose broker is too old to say it."""
        from confluent_kafka import KafkaException, TopicCollection

        answers = self._admin.describe_topics(TopicCollection(sorted(topics)), request_timeout=seconds)
        wait_for(answers.values(), self._admin, seconds)
        found: dict[str, str] = {}
        for topic, future in answers.items():
            with suppress(KafkaException, TimeoutError):
                found[topic] = str(future.result(0).topic_id)
        return {topic: name for topic, name in found.items() if name != NO_ID}

    def _settings(self, topics: Iterable[str], seconds: float) -> dict[str, dict[str, str]]:
        """The settings of topics; empty for a topic whose settings could not be read."""
        from confluent_kafka import KafkaException
        from confluent_kafka.admin import ConfigResource

        answers = self._admin.describe_configs(
            [ConfigResource(ConfigResource.Type.TOPIC, topic) for topic in topics], request_timeout=seconds
        )
        wait_for(answers.values(), self._admin, seconds)
        found: dict[str, dict[str, str]] = {}
        for resource, future in answers.items():
            try:
                found[resource.name] = {name: str(entry.value) for name, entry in future.result(0).items()}
            except (KafkaException, TimeoutError):
                found[resource.name] = {}
        return found

    def _commit(self, question: Mapping[str, Any]) -> dict[str, Any]:
        """Commits each group's offsets; `failed` says why not, by group. Of those `later` names the groups of which the
        broker said nothing, or that just need time, and `refused` those that another client would not get."""
        from confluent_kafka import KafkaError, KafkaException

        moving = (  # the coordinator of the groups, or it has just been made
            KafkaError.NOT_COORDINATOR, KafkaError.COORDINATOR_NOT_AVAILABLE, KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
        )  # fmt: skip
        final = (  # no access; the group has members; the topic is gone
            KafkaError.GROUP_AUTHORIZATION_FAILED, KafkaError.TOPIC_AUTHORIZATION_FAILED,
            KafkaError.CLUSTER_AUTHORIZATION_FAILED, KafkaError.INVALID_GROUP_ID, KafkaError.UNKNOWN_MEMBER_ID,
            KafkaError.NON_EMPTY_GROUP, KafkaError.UNKNOWN_TOPIC_OR_PART,
        )  # fmt: skip
        failed, later, refusals = dict[str, str](), [], []
        for group, future in self._commits(question["groups"], float(question["seconds"])).items():
            try:
                refused = next((each.error for each in future.result(0).topic_partitions if each.error), None)
                if refused is not None:
                    raise KafkaException(refused)
            except TimeoutError:
                failed[group] = self._reason()
                later.append(group)
            except KafkaException as error:
                failed[group] = reason_of(self._client, error)
                code = error.args[0].code()
                if code < 0 or code in moving:  # below zero are librdkafka's own: no answer came
                    later.append(group)
                elif code in final:
                    refusals.append(group)
        return {"failed": failed, "later": later, "refused": refusals}

    def _commits(self, groups: Mapping[str, Iterable[Sequence[Any]]], seconds: float) -> dict[str, Any]:
        """A future for each group whose offsets (topic, partition, offset) are committed; waits at most `seconds`."""
        from confluent_kafka import ConsumerGroupTopicPartitions, TopicPartition

        answers = {}
        for group, offsets in groups.items():
            request = [ConsumerGroupTopicPartitions(group, [TopicPartition(*each) for each in offsets])]
            answered = self._admin.alter_consumer_group_offsets(request, request_timeout=seconds)
            answers[group] = next(iter(answered.values()))
        wait_for(answers.values(), self._admin, seconds)
        return answers

    def _reason(self) -> str:
        """Why there was no answer, as librdkafka reported it."""
        reason = next((each for each in self._reasons if "brokers are down" not in each), None)
        self._reasons.clear()
        return "timed out" if reason is None else reason_of(self._client, reason)


def _errors(offsets: Offsets, final: bool) -> list[tuple[str, str, str]]:
    """Topic, partition and reason of what the broker does not have, or does not show to this client; or of other errors
    that a broker answered with, in which the client itself has no part."""
    from confluent_kafka import KafkaError

    refusals = (
        KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC, KafkaError._UNKNOWN_PARTITION,
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
    )  # fmt: skip
    return [
        (topic, str(partition), str(error.str()))
        for (topic, partition), error in offsets.errors.items()
        if (error.code() in refusals if final else error.code() > 0 and error.code() not in refusals)
    ]


def _by_topic(offsets: Offsets) -> dict[str, dict[str, int]]:
    found: dict[str, dict[str, int]] = {}
    for (topic, partition), offset in offsets.known.items():
        found.setdefault(topic, {})[str(partition)] = offset
    return found


def _serve(questions: BinaryIO, answers: BinaryIO) -> None:
    settings = json.loads(questions.readline() or b"{}")
    asker: OffsetClient | None = None
    for line in questions:
        try:
            asker = asker or OffsetClient(KafkaClient(settings["servers"], settings["options"]))
            answer = asker.answer(json.loads(line))
        except UserError as error:
            answer = {"unusable": str(error)}
        except Exception as error:
            answer = {"broken": f"{type(error).__name__}: {error}"}
        answers.write(json.dumps(answer).encode() + b"\n")
        answers.flush()


def main() -> None:
    """Answers questions until stdin ends. Never returns."""
    with os.fdopen(os.dup(1), "wb") as out:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # nothing else may write between the answers
        try:
            _serve(sys.stdin.buffer, out)
        except OSError:
            pass  # the driver is gone
        finally:
            os._exit(0)  # without destroying the client: it may wait for an answer still
