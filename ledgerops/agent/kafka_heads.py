"""Head and earliest offsets of all that the watched queries read, and its retention, as the Kafka broker reports them.

One question covers all queries, in a thread of its own; every few minutes it also asks for the topics' settings.
"""

import time
from collections.abc import Iterable, Mapping
from typing import Any

import orjson

from ledgerops.agent.kafka_proxy import BrokerError, BrokerProxy
from ledgerops.agent.queue import EventQueue
from ledgerops.model.records import Partition
from ledgerops.runtime.runs import Runs

SETTINGS_SECONDS = 300.0  # how long the settings of a topic are used before they are read again
ENDS = ("latest", "earliest")  # of an answer: topic -> partition -> offset


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
        refused = {(topic, partition): reason for topic, partition, reason in answer["refused"]}
        silent = {
            (topic, partition)
            for topic, partition in set(asked) - refused.keys()
            if any(partition not in answer[end].get(topic, ()) for end in ENDS)
        }
        withheld = {(topic, partition): reason for topic, partition, reason in answer.get("withheld", ())}
        # beside good answers an error of the broker's is one as well, and a new process would get the same
        self._broker.note_answer(not silent or bool(answer["latest"] and not silent - withheld.keys()))
        self._queue_offsets(queries, answer, silent, withheld, began)
        if refused:
            (topic, partition), reason = next(iter(refused.items()))
            raise BrokerError(f"{topic} {partition}: {reason}")

    def close(self) -> None:
        """Abandons a question in progress."""
        self._closing = True

    def _queue_offsets(
        self, queries: Mapping[str, set[Partition]], answer: Mapping[str, Any], silent: set[Partition],
        withheld: Mapping[Partition, str], began: float,
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
                reason = next((withheld[each] for each in sorted(unanswered) if each in withheld), answer["reason"])
                data: dict[str, Any] = {"error": f"{of}{reason}", "unreachable_since": since}
            else:
                self._since.pop(name, None)
                data = {end: _offsets_of(read, answer[end]) for end in ENDS}
                topics = {topic for topic, _ in read}
                data["retention_seconds"] = self._retention(topics)
                if ids := {topic: name for topic, name in answer.get("ids", {}).items() if topic in topics}:
                    data["topic_ids"] = ids
                if answer.get("seconds") is not None:
                    data["seconds"] = round(answer["seconds"], 4)
            self._queue.put("offsets", orjson.dumps({"run_id": run_id, **data}), name)

    def _retention(self, topics: Iterable[str]) -> dict[str, float]:
        """Seconds by topic; topics that never delete by age are absent."""
        seconds = dict[str, float]()
        for topic in topics:
            settings = self._settings.get(topic, (0.0, {}))[1]
            if "delete" not in settings.get("cleanup.policy", ""):
                continue
            age = int(settings.get("retention.ms", -1))
            if age >= 0:
                seconds[topic] = age / 1000
        return seconds


def _offsets_of(partitions: Iterable[Partition], offsets: Mapping[str, Mapping[str, int]]) -> dict[str, dict[str, int]]:
    """Those of these partitions, by topic."""
    found: dict[str, dict[str, int]] = {}
    for topic, partition in sorted(partitions):
        if partition in offsets.get(topic, ()):
            found.setdefault(topic, {})[partition] = offsets[topic][partition]
    return found
