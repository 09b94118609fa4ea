"""The queue between collectors and the worker: bounded, never blocking; it counts what it drops."""

import queue
import threading
import time
from typing import NamedTuple

import orjson

from ledgerops.metrics.self_watch import SelfStats
from ledgerops.model.records import ObservationKind, Observer

MAX_EVENTS = 10_000  # a minute of 50 busy queries, about 30 MB of JSON
MAX_TAKEN_EVENTS = 200  # at once: the snapshot must not wait for the end of a long burst
MAX_BYTES = 64 * 1024 * 1024  # of JSON: a record of a source with thousands of partitions has hundreds of kilobytes


class Event(NamedTuple):
    """Something observed, with the data still as JSON text. `origin` is the session that it came from, if any."""

    at: float
    kind: ObservationKind
    query: str | None
    data: str | bytes
    origin: object = None


class EventQueue:
    """Any thread puts, the worker takes."""

    def __init__(self, stats: SelfStats, size: int = MAX_EVENTS) -> None:
        self.stats = stats
        self.limit = size
        self._queue: queue.Queue[Event | None] = queue.Queue(size)
        self._bytes, self._lock = 0, threading.Lock()

    def put(self, kind: ObservationKind, data: str | bytes, query: str | None = None, origin: object = None) -> bool:
        """False when the queue was full: the event is lost, and counted."""
        if self._reserve(len(data)):
            try:
                self._queue.put_nowait(Event(time.time(), kind, query, data, origin))
                return True
            except queue.Full:
                self._free(len(data))
        with self.stats.lock:
            self.stats.dropped += 1
        return False

    def wake(self) -> None:
        """Ends a `take` that is waiting, without an event."""
        try:
            self._queue.put_nowait(None)
        except queue.Full:
            pass

    def take(self, timeout: float) -> list[Event]:
        """The events that wait, at most MAX_TAKEN_EVENTS, after waiting for the first at most `timeout` seconds."""
        try:
            events = [self._queue.get(timeout=timeout)]
        except queue.Empty:
            return []
        while len(events) < MAX_TAKEN_EVENTS:
            try:
                events.append(self._queue.get_nowait())
            except queue.Empty:
                break
        taken = [event for event in events if event is not None]
        self._free(sum(len(event.data) for event in taken))
        return taken

    def report(self) -> None:
        """Puts an `observer` record, for all sessions of the driver: what ledgerops counts about itself, so that a
        diagnosis knows what it may have missed, also a later one of the recording."""
        stats = self.stats.copy()
        seen = Observer(
            at=time.time(), queue_size=len(self), queue_limit=self.limit, dropped=stats.dropped,
            events=sum(stats.events.values()), callback_seconds=stats.callback_seconds,
            worker_seconds=sum(stats.worker_seconds.values()), collector_errors=dict(stats.collector_errors),
        )  # fmt: skip
        self.put("observer", orjson.dumps(seen))

    def _reserve(self, size: int) -> bool:
        with self._lock:
            if self._bytes and self._bytes + size > MAX_BYTES:
                return False
            self._bytes += size
            return True

    def _free(self, size: int) -> None:
        with self._lock:
            self._bytes -= size

    def __len__(self) -> int:
        return self._queue.qsize()
