"""Head and earliest offsets of all that the watched queries read, and its retention, as the Kafka broker reports them.

One question covers all queries, in a thread of its own; every few minutes it also asks for the topics' settings.
"""

import time
from collections.abc import Iterable, Mapping
from typing import Any

import orjson

from ledgerops.agent.kafka_proxy import BrokerError, BrokerProxy
from ledgerops.agent.queue import EventQueue
from ledgerops.model.records import Offsets, Partition
from ledgerops.runtime.runs import Runs

SETTINGS_SECONDS = 300.0  # how long the settings of a topic are used before they are read again


class KafkaCollector:
    """`runs` knows what the queries read; the broker's answer is put on `queue` for each query."""

    def __init__(self, queue: EventQueue, runs: Runs, broker: BrokerProxy) -> None:
        self._queue, self._runs, self._broker = queue, runs, broker
        self._closing = False
        self._settings: dict[str, tuple[float, Mapping[str, str]]] = {}  # topic -> when asked, its settings
        self._since: dict[str, float] = {}  # query -> when the first of its failed attempts began

    def collect(self) -> None:
        """Queues the offsets of each query. Raises UserError for bad settings, and at the end BrokerError for a topic
        that is gone or forbidden."""
        queries = {name: set(run.kafka_offsets) for name, run in self._runs.by_query().items() if run.kafka_offsets}
        self._since = {name: since for name, since in self._since.items() if name in queries}
        if not queries:
            return
        began = time.time()
        asked = sorted({partition for read in queries.values() for partition in read})
        topics = {topic for topic, _ in asked}
        self._settings = {topic: known for topic, known in self._settings.items() if topic in topics}
        due = [t for t in topics if began - self._settings.get(t, (0.0, {}))[0] >= SETTINGS_SECONDS]
        question = {"ask": "offsets", "partitions": [[t, int(p)] for t, p in asked], "settings": sorted(due)}
        try:
            answer = self._broker.ask(question, given_up=lambda: self._closing)
        except BrokerError:
            if self._closing:
                return
            raise
        for topic, settings in answer["settings"].items():  # those of before hold where none could be read now
            self._settings[topic] = began, settings or self._settings.get(topic, (0.0, {}))[1]
        latest, earliest = _flat(answer["latest"]), _flat(answer["earliest"])
        refused = {(topic, partition): reason for topic, partition, reason in answer["refused"]}
        silent = set(asked) - refused.keys() - (latest.keys() & earliest.keys())
        self._broker.note_answer(not silent)
        self._queue_offsets(queries, latest, earliest, silent, answer["reason"], began, answer.get("seconds"))
        if refused:
            (topic, partition), reason = next(iter(refused.items()))
            raise BrokerError(f"{topic} {partition}: {reason}")

    def close(self) -> None:
        """Abandons a question in progress."""
        self._closing = True

    def _queue_offsets(
        self, queries: Mapping[str, set[Partition]], latest: Offsets, earliest: Offsets, silent: set[Partition],
        reason: str, began: float, took: float | None,
    ) -> None:  # fmt: skip
        runs = self._runs.by_query()
        for name, read in queries.items():
            if name not in runs:
                continue
            run_id = runs[name].run_id
            unanswered = read & silent
            if unanswered:
                since = self._since.setdefault(name, began)
                of = "" if len(unanswered) == len(read) else f"{len(unanswered)} of {len(read)} partitions: "
                data: dict[str, Any] = {"error": f"{of}{reason}", "unreachable_since": since}
            else:
                self._since.pop(name, None)
                topics = {topic for topic, _ in read}
                data = {"latest": _nested(latest, read), "earliest": _nested(earliest, read)} | self._retention(topics)
                if took is not None:
                    data["seconds"] = round(took, 4)
            self._queue.put("offsets", orjson.dumps({"run_id": run_id, **data}), name)

    def _retention(self, topics: Iterable[str]) -> dict[str, dict[str, float]]:
        """Retention by topic; topics that never delete are absent."""
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


def _flat(nested: Mapping[str, Mapping[str, int]]) -> dict[Partition, int]:
    return {(topic, partition): offset for topic, offsets in nested.items() for partition, offset in offsets.items()}


def _nested(offsets: Offsets, wanted: Iterable[Partition]) -> dict[str, dict[str, int]]:
    found: dict[str, dict[str, int]] = {}
    for topic, partition in sorted(wanted):
        if (topic, partition) in offsets:
            found.setdefault(topic, {})[partition] = offsets[topic, partition]
    return found
