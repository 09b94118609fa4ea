"""The offsets of each query as a consumer group's, so that any Kafka lag tool sees it. Spark itself commits none.

After a batch the offsets that it ended at are committed to a group without members, off the job's threads. The newest
ones win; within a run they never go back. A new run may: it began from an older checkpoint.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass

from ledgerops.collect.kafka import ANSWER_SECONDS, Broker, consumed
from ledgerops.kafkaclient import KafkaClient
from ledgerops.records import Offsets, Partition
from ledgerops.snapshot import Snapshot

QUERY = "{query}"  # in the pattern of the groups' names
LAST_SECONDS = 2.0  # that the end of the watch may wait for the last commit


@dataclass(frozen=True, slots=True)
class Committed:
    run_id: str
    offsets: Offsets


class OffsetCommitter:
    """`pattern` holds {query}: two queries in one group would overwrite each other's offsets."""

    def __init__(self, snapshot: Callable[[], Snapshot], connect: Callable[[], KafkaClient], pattern: str) -> None:
        self._snapshot, self._pattern = snapshot, pattern
        self._broker = Broker(connect)
        self._committed: dict[str, Committed] = {}
        self._lock = threading.Lock()

    def look(self) -> None:
        """Commits what is new. Raises the first error, after every group was tried; the next look tries again."""
        with self._lock:
            self._commit(ANSWER_SECONDS)

    def close(self) -> None:
        """Commits what the last batches ended at, as far as the broker takes it in LAST_SECONDS."""
        if self._lock.acquire(timeout=ANSWER_SECONDS):
            try:
                self._commit(LAST_SECONDS)
            finally:
                self._lock.release()
        self._broker.close()

    def _commit(self, seconds: float) -> None:
        due = self._due()
        if not due:
            return
        admin = self._broker.admin()
        from confluent_kafka import ConsumerGroupTopicPartitions, KafkaError, KafkaException, TopicPartition

        answers = {}
        for query, new in due.items():
            group = self._pattern.replace(QUERY, query)
            offsets = [TopicPartition(topic, int(number), end) for (topic, number), end in new.offsets.items()]
            request = [ConsumerGroupTopicPartitions(group, offsets)]
            answers[query] = next(iter(admin.alter_consumer_group_offsets(request, request_timeout=seconds).values()))
        self._broker.wait(answers, seconds=seconds)
        later = (  # the coordinator of the groups moves, or has just been made: the next look finds it
            KafkaError.NOT_COORDINATOR,
            KafkaError.COORDINATOR_NOT_AVAILABLE,
            KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
        )
        problem: Exception | None = None
        for query, future in answers.items():
            try:
                refused = next((each.error for each in future.result(0).topic_partitions if each.error), None)
                if refused is not None:
                    raise KafkaException(refused)
            except TimeoutError as error:
                problem = problem or error
            except KafkaException as error:
                problem = problem or (None if error.args[0].code() in later else error)
            else:
                self._committed[query] = due[query]
        if problem is not None and not self._broker.closed:
            raise problem

    def _due(self) -> dict[str, Committed]:
        due = {}
        for name, query in self._snapshot().queries.items():
            last, ends = query.state.history.last, consumed(query)
            if last is None or not ends:
                continue
            done = self._committed.get(name)
            if done is not None and done.run_id == last.run_id:
                ends = {partition: max(end, _of(done.offsets, partition)) for partition, end in ends.items()}
            new = Committed(last.run_id, ends)
            if new != done:
                due[name] = new
        return due


def _of(offsets: Offsets, partition: Partition) -> int:
    return offsets.get(partition, 0)
