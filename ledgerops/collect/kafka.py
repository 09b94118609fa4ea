"""What the broker itself says: head and earliest offsets of all that the watched queries read, and its retention.

Three questions for all queries together, in a thread of its own: the newest offsets, the oldest ones, and every few
minutes the settings of the topics. confluent-kafka is imported at the first look only.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future, wait
from typing import Any

import orjson

from ledgerops.collect.inbox import Inbox
from ledgerops.errors import UserError
from ledgerops.kafkaclient import KafkaClient, plain, without_secrets
from ledgerops.records import Offsets, Partition
from ledgerops.snapshot import QuerySnapshot, Snapshot

ANSWER_SECONDS = 4.0  # a broker that is merely slow answers in that time
STEP = 0.1  # seconds: how soon a question is given up when the collector is to end
SETTINGS_SECONDS = 300.0  # for which the settings of a topic are believed
RECONNECT_MS = 1000  # librdkafka's 10 s would keep a broker that is back unknown for as long
KAFKA = "Kafka"  # Spark's descriptions: KafkaV2[Subscribe[transactions]]
Answers = Mapping[Any, "Future[Any]"]


# Every client that was made: to destroy one that still waits for an answer can crash the process, and so the job.
_kept: list[Any] = []


class Broker:
    """An admin client of confluent-kafka that is made at the first question, gives up in time, and is quiet.

    `connect` may raise UserError: it reads the settings. `reason` says why the last question had no answer.
    """

    def __init__(self, connect: Callable[[], KafkaClient]) -> None:
        self._connect = connect
        self._client: KafkaClient | None = None
        self._admin: Any = None
        self._told: deque[str] = deque(maxlen=10)
        self._closing = threading.Event()

    def admin(self) -> Any:
        if self._admin is None:
            try:
                from confluent_kafka.admin import AdminClient
            except ImportError:
                raise UserError("kafka_servers needs confluent-kafka: install ledgerops[kafka]") from None
            self._client = self._connect()
            quiet = {"log_level": 0, "error_cb": self._note, "client.id": "ledgerops"}
            limits = {"socket.timeout.ms": int(1000 * ANSWER_SECONDS), "reconnect.backoff.max.ms": RECONNECT_MS}
            self._admin = AdminClient(self._client.librdkafka(**quiet, **limits))
            _kept.append(self._admin)
        return self._admin

    def wait(self, *answers: Answers, seconds: float = ANSWER_SECONDS) -> None:
        """Until all are there, the time is over, or the end was asked for."""
        pending = {future for each in answers for future in each.values()}
        end = time.monotonic() + seconds
        while pending and not self._closing.is_set() and time.monotonic() < end:
            _, pending = wait(pending, timeout=STEP)
        self._admin.poll(0)  # serves the callback

    def reason(self) -> str:
        told = next((each for each in self._told if "brokers are down" not in each), None)
        self._told.clear()
        if told is None or self._client is None:
            return "timed out"
        return plain(without_secrets(self._client, told))

    def renew(self) -> None:
        """Lets the next question be asked by a new client: librdkafka 2.16 keeps the leaders that it knew over a
        broker's restart, and is refused (FENCED_LEADER_EPOCH) for ever."""
        self._admin = None

    def close(self) -> None:
        self._closing.set()

    @property
    def closed(self) -> bool:
        return self._closing.is_set()

    def _note(self, error: Any) -> None:
        self._told.append(str(error.str()))


class KafkaCollector:
    """`snapshot` tells what the queries read; what the broker says of it goes to `inbox`, for each query."""

    def __init__(
        self,
        inbox: Inbox,
        snapshot: Callable[[], Snapshot],
        connect: Callable[[], KafkaClient],
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._inbox, self._snapshot, self._clock = inbox, snapshot, clock
        self._broker = Broker(connect)
        self._settings: dict[str, tuple[float, Mapping[str, str]]] = {}  # topic -> when asked, its settings
        self._since: dict[str, float] = {}  # query -> when the first of its vain looks began

    def look(self) -> None:
        """Raises UserError for settings, and KafkaException for a topic that is gone or forbidden, after the rest."""
        queries = {name: read for name, query in self._snapshot().queries.items() if (read := read_by(query))}
        self._since = {name: since for name, since in self._since.items() if name in queries}
        if not queries:
            return
        began, admin = self._clock(), self._broker.admin()
        from confluent_kafka import TopicPartition
        from confluent_kafka.admin import OffsetSpec

        asked = {p: TopicPartition(p[0], int(p[1])) for read in queries.values() for p in read}
        newest = admin.list_offsets(
            {each: OffsetSpec.latest() for each in asked.values()}, request_timeout=ANSWER_SECONDS
        )
        oldest = admin.list_offsets(
            {each: OffsetSpec.earliest() for each in asked.values()}, request_timeout=ANSWER_SECONDS
        )
        self._broker.wait(newest, oldest)
        if self._broker.closed:
            return
        refused: dict[Partition, Exception] = {}
        latest, earliest = (_offsets(answers, refused) for answers in (newest, oldest))
        if any(_fenced(future) for answers in (newest, oldest) for future in answers.values()):
            self._broker.renew()
        silent = asked.keys() - refused.keys() - (latest.keys() & earliest.keys())
        reason = self._broker.reason()
        if not silent:
            self._ask_settings(admin, {topic for topic, _ in latest})
        snapshot = self._snapshot()
        for name, read in queries.items():
            if name not in snapshot.queries:
                continue
            run_id = snapshot.queries[name].state.history.run_id
            unanswered = sorted(read & silent)
            if unanswered:
                since = self._since.setdefault(name, began)
                of = "" if len(unanswered) == len(read) else f"{len(unanswered)} of {len(read)} partitions: "
                data: dict[str, Any] = {"error": f"{of}{reason}", "unreachable_since": since}
            else:
                self._since.pop(name, None)
                topics = {topic for topic, _ in read}
                data = {"latest": _nested(latest, read), "earliest": _nested(earliest, read)} | self._kept(topics)
            self._inbox.put("offsets", orjson.dumps({"run_id": run_id, **data}), name)
        if refused:
            raise next(iter(refused.values()))

    def close(self) -> None:
        """Ends a question that is under way."""
        self._broker.close()

    def _ask_settings(self, admin: Any, topics: Iterable[str]) -> None:
        """Of those whose settings are old. Who may not ask for them does without."""
        from confluent_kafka import KafkaException
        from confluent_kafka.admin import ConfigResource

        now = self._clock()
        due = [t for t in sorted(topics) if now - self._settings.get(t, (0.0, {}))[0] >= SETTINGS_SECONDS]
        if not due:
            return
        answers = admin.describe_configs(
            [ConfigResource(ConfigResource.Type.TOPIC, topic) for topic in due], request_timeout=ANSWER_SECONDS
        )
        self._broker.wait(answers)
        for resource, future in answers.items():
            known = self._settings.get(resource.name, (0.0, {}))[1]
            try:
                known = {name: str(entry.value) for name, entry in future.result(0).items()}
            except (KafkaException, TimeoutError):
                pass
            self._settings[resource.name] = (now, known)

    def _kept(self, topics: Iterable[str]) -> dict[str, dict[str, float]]:
        """Retention by topic, of those that delete at all."""
        seconds, sizes = dict[str, float](), dict[str, float]()
        for topic in topics:
            settings = self._settings.get(topic, (0.0, {}))[1]
            if "delete" not in settings.get("cleanup.policy", ""):
                continue
            age, size = int(settings.get("retention.ms", -1)), int(settings.get("retention.bytes", -1))
            if age >= 0:
                seconds[topic] = age / 1000
            if size >= 0:
                sizes[topic] = size
        return {"retention_seconds": seconds, "retention_bytes": sizes}


def read_by(query: QuerySnapshot) -> set[Partition]:
    """The Kafka partitions that a query reads, by its newest batch; none when it has ended."""
    history = query.state.history
    if history.ended is not None or history.last is None or history.run_id is None:
        return set()
    return set(consumed(query))


def consumed(query: QuerySnapshot) -> Offsets:
    """The next Kafka offset that a query will read of each partition; of two sources the slower."""
    last, found = query.state.history.last, dict[Partition, int]()
    for source in last.sources if last is not None else ():
        if source.description.startswith(KAFKA):
            for partition, end in source.end.items():
                if partition[1].isdecimal():
                    found[partition] = min(end, found.get(partition, end))
    return found


def _offsets(answers: Answers, refused: dict[Partition, Exception]) -> dict[Partition, int]:
    """What was answered; `refused` takes what the broker does not have or does not tell."""
    from confluent_kafka import KafkaError, KafkaException

    final = (
        KafkaError.UNKNOWN_TOPIC_OR_PART,
        KafkaError._UNKNOWN_TOPIC,
        KafkaError._UNKNOWN_PARTITION,
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
    )
    found: dict[Partition, int] = {}
    for each, future in answers.items():
        partition = (each.topic, str(each.partition))
        try:
            found[partition] = int(future.result(0).offset)
        except KafkaException as error:
            if error.args[0].code() in final:
                refused[partition] = error
        except TimeoutError:
            pass
    return found


def _fenced(future: Future[Any]) -> bool:
    from confluent_kafka import KafkaError, KafkaException

    error = future.exception(0) if future.done() else None
    return isinstance(error, KafkaException) and error.args[0].code() == KafkaError.FENCED_LEADER_EPOCH


def _nested(offsets: Offsets, wanted: Iterable[Partition]) -> dict[str, dict[str, int]]:
    found: dict[str, dict[str, int]] = {}
    for topic, partition in sorted(wanted):
        if (topic, partition) in offsets:
            found.setdefault(topic, {})[partition] = offsets[topic, partition]
    return found
