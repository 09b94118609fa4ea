"""What ledgerops counts about itself, recorded: so that a diagnosis knows what it may have missed, later too."""

from __future__ import annotations

import time

import orjson

from ledgerops.agent.queue import EventQueue
from ledgerops.model.records import Observer


class ObserverCollector:
    """One for a driver: the queue, the worker and the collectors are shared by its sessions."""

    def __init__(self, queue: EventQueue) -> None:
        self._queue = queue

    def collect(self) -> None:
        """Queues one `observer` record: the length of the queue, and counts and seconds since the start."""
        stats = self._queue.stats.copy()
        seen = Observer(
            at=time.time(), queue_size=len(self._queue), queue_limit=self._queue.limit, dropped=stats.dropped,
            events=sum(stats.events.values()), callback_seconds=stats.callback_seconds,
            worker_seconds=sum(stats.worker_seconds.values()), collector_errors=dict(stats.collector_errors),
        )  # fmt: skip
        self._queue.put("observer", orjson.dumps(seen))
