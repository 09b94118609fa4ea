"""The offsets of each query as a consumer group's, so that any Kafka lag tool sees it. Spark itself commits none.

After a batch the offsets that it ended at are committed to a group without members, off the job's threads. The newest
ones win; within a run they never go back. A new run may: it began from an older checkpoint.
"""

import threading

from ledgerops.agent.kafka_proxy import ANSWER_SECONDS, BrokerError, BrokerProxy
from ledgerops.runtime.runs import Consumed, Runs

QUERY = "{query}"  # in the pattern of the groups' names
LAST_SECONDS = 2.0  # how long closing the watch may wait for the last commit


class OffsetCommitter:
    """`pattern` holds {query}: two queries in one group would overwrite each other's offsets."""

    def __init__(self, runs: Runs, broker: BrokerProxy, pattern: str) -> None:
        self._runs, self._broker, self._pattern = runs, broker, pattern
        self._committed: dict[str, Consumed] = {}
        self._lock = threading.Lock()

    def collect(self) -> None:
        """Commits what is new. Raises BrokerError for the first group that the broker refuses, after all were tried.

        A broker that is away is told of by the question for the heads. The next call tries again.
        """
        with self._lock:
            self._commit(ANSWER_SECONDS)

    def close(self) -> None:
        """Commits the end offsets of the last batches, if the broker accepts them within LAST_SECONDS."""
        if self._lock.acquire(timeout=ANSWER_SECONDS):
            try:
                self._commit(LAST_SECONDS)
            finally:
                self._lock.release()

    def _commit(self, seconds: float) -> None:
        due = {self._pattern.replace(QUERY, query): (query, new) for query, new in self._due().items()}
        if not due:
            return
        groups = {
            group: [[topic, int(number), end] for (topic, number), end in new.offsets.items()]
            for group, (_, new) in due.items()
        }
        answer = self._broker.ask({"ask": "commit", "groups": groups}, seconds)
        failed = answer["failed"]
        self._broker.note_answer(failed.keys() <= set(answer["refused"]))  # a refusal is an answer
        for group, (query, new) in due.items():
            if group not in failed:
                self._committed[query] = new
        for group, reason in failed.items():
            if group not in answer["later"]:  # the next call is soon enough for those
                raise BrokerError(f"{group}: {reason}")

    def _due(self) -> dict[str, Consumed]:
        due = {}
        consumed = self._runs.consumed()
        self._committed = {name: done for name, done in self._committed.items() if name in consumed}
        for name, (run_id, ends) in consumed.items():
            if not ends:
                continue
            done = self._committed.get(name)
            if done is not None and done.run_id == run_id:
                ends = {partition: max(end, done.offsets.get(partition, 0)) for partition, end in ends.items()}
            new = Consumed(run_id, ends)
            if new != done:
                due[name] = new
        return due
