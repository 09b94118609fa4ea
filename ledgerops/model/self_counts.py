"""What ledgerops counts about itself: plain numbers, written by listener, worker, collectors and exporter."""

from __future__ import annotations

import threading
from collections import Counter
from dataclasses import dataclass, field, replace


@dataclass(slots=True)
class SelfStats:
    """The subject of the self metrics. Several threads write: change it under `lock`, read a `copy`."""

    events: Counter[str] = field(default_factory=Counter)  # by kind, as received from Spark
    queue_size: int = 0
    dropped: int = 0  # events that found the queue full
    callbacks: int = 0
    callback_seconds: float = 0.0
    worker_seconds: dict[str, float] = field(default_factory=dict)  # by step: parse, record, judge, snapshot
    collector_errors: Counter[str] = field(default_factory=Counter)  # by collector
    series_dropped: int = 0  # the most that the series budget cut of each query, summed up
    scrape_seconds: float | None = None  # the last scrape
    recording_errors: int = 0
    recording_bytes: int = 0
    requests_refused: Counter[str] = field(default_factory=Counter)  # by reason: address, busy, slow, threads
    lock: threading.Lock = field(default_factory=threading.Lock, repr=False, compare=False)

    def error(self, collector: str) -> None:
        """Counts one failure of a collector. Safe for several threads."""
        with self.lock:
            self.collector_errors[collector] += 1

    def refuse(self, reason: str) -> None:
        """Counts one refused request by its reason. Safe for several threads."""
        with self.lock:
            self.requests_refused[reason] += 1

    def spent(self, step: str, seconds: float) -> None:
        """Adds seconds of the worker to a step. Safe for several threads."""
        with self.lock:
            self.worker_seconds[step] = self.worker_seconds.get(step, 0.0) + seconds

    def copy(self) -> SelfStats:
        """As it is now; nobody else writes to the copy."""
        with self.lock:
            return replace(
                self,
                events=self.events.copy(),
                worker_seconds=self.worker_seconds.copy(),
                collector_errors=self.collector_errors.copy(),
                requests_refused=self.requests_refused.copy(),
                lock=threading.Lock(),
            )
