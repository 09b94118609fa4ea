"""Pushes the metrics of /metrics, and beginnings and ends of root causes, to an OTLP/HTTP receiver.

Each export is made of the newest values, so nothing is kept for a receiver that is away: totals hold what was missed.
Only log records wait, MAX_RECORDS of them. What a receiver did not take is counted.
"""

import logging
import random
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ledgerops.agent.otlp_receiver import Receiver, Refused
from ledgerops.config import Config
from ledgerops.metrics.self_watch import SelfStats
from ledgerops.runtime.otlp import SERVICE, CauseLog, MetricsEncoder, logs_request
from ledgerops.runtime.snapshot import Published, Snapshot

log = logging.getLogger("ledgerops")

CLOSING_SECONDS = 1.0  # for the last export: a job cluster is gone some seconds after its last job
MIN_BACKOFF_SECONDS = 1.0
MAX_WAIT_SECONDS = 300.0  # whatever a Retry-After asks for
MAX_RECORDS = 1_000
MAX_WARNINGS = 5  # with different reasons
NO_LOGS = (404, 405)  # Prometheus has no /v1/logs


class Pusher:
    """One thread that exports every `otlp_interval` seconds, and at once when a query has ended. `families` returns
    what /metrics serves; `instance` tells drivers apart. Raises UserError for unusable settings."""

    def __init__(
        self, config: Config, families: Callable[[], Iterable[Published]], stats: SelfStats, instance: str
    ) -> None:
        self._receiver = Receiver(config)
        self._families, self._stats, self._interval = families, stats, config.otlp_interval
        self._resource = {"service.name": SERVICE, "service.instance.id": instance}
        self._encoder = MetricsEncoder(self._resource, time.time(), config.otlp_temporality == "delta")
        self._causes, self._judged = CauseLog(config.app), dict[str, float]()
        self._records: deque[dict[str, Any]] = deque()
        self._takes_logs = True
        self._ended: set[tuple[str, float]] = set()
        self._failures, self._not_before = 0, 0.0
        self._warned: set[str] = set()
        self._due, self._stopping = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run, name="ledgerops-otlp", daemon=True)
        for signal in ("metrics", "logs"):
            stats.pushed(signal, 0)
            stats.pushed(signal, 0, "unreachable")

    def start(self) -> None:
        """Starts the thread. Call it once."""
        self._thread.start()

    def notice(self, snapshot: Snapshot) -> None:
        """Notes what a new snapshot brings; the worker calls it and does not wait."""
        for name, query in snapshot.queries.items():
            verdict = query.state.verdict
            if verdict is not None and self._judged.get(name) != verdict.at:
                self._judged[name] = verdict.at
                for record in self._causes.take(verdict) if self._takes_logs else ():
                    if len(self._records) < MAX_RECORDS:
                        self._records.append(record)
                    else:
                        self._stats.pushed("logs", 1, "full")
        if self._judged.keys() - snapshot.queries.keys():
            self._judged = {name: at for name, at in self._judged.items() if name in snapshot.queries}
            self._causes.forget(self._judged)
        ended = {(name, over.at) for name, state in snapshot.states().items() if (over := state.history.ended)}
        if ended - self._ended:
            self._due.set()
        self._ended = ended

    def close(self, seconds: float = CLOSING_SECONDS) -> None:
        """Exports once more, for at most so many seconds. May be called twice."""
        self._stopping.set()
        self._due.set()
        if self._thread.is_alive():
            self._thread.join(seconds)
            if self._thread.is_alive():
                self._warn("has not taken the last values in time")

    def _run(self) -> None:
        last = False
        while not last:
            now = time.monotonic()
            self._due.wait(self._not_before - now if self._failures else self._interval)
            self._due.clear()
            last = self._stopping.is_set()
            if last or time.monotonic() >= self._not_before:
                try:
                    self._export()
                except Exception as error:
                    self._failed(Refused(f"{type(error).__name__}: {error}"))

    def _export(self) -> None:
        """Sends everything once. What follows a request without an answer is counted, and not tried."""
        failure: Refused | None = None
        for points in self._encoder.batches(self._families(), time.time()):
            if failure is not None and failure.retry_seconds is not None:
                self._stats.pushed("metrics", len(points), _reason(failure))
                continue
            try:
                self._send("metrics", self._encoder.request(points), len(points))
                self._encoder.accept(points)
            except Refused as error:
                failure = error
                self._stats.pushed("metrics", len(points), _reason(error))
        if failure is None or failure.retry_seconds is None:
            failure = self._send_records() or failure
        if failure is None:
            self._failures, self._not_before = 0, 0.0
        else:
            self._failed(failure)

    def _send_records(self) -> Refused | None:
        """Records wait for a receiver that is away or busy, and are dropped where it refuses them."""
        records = self._records.copy()
        try:
            if records:
                self._send("logs", logs_request(self._resource, list(records)), len(records))
        except Refused as error:
            if error.retry_seconds is not None:
                return error
            self._stats.pushed("logs", len(records), _reason(error))
            self._takes_logs = error.status not in NO_LOGS
            if not self._takes_logs:
                log.warning("%s takes no log records; root causes are sent as metrics only", self._receiver.endpoint)
        for _ in records:
            self._records.popleft()
        return None

    def _send(self, signal: str, request: Mapping[str, Any], items: int) -> None:
        rejected = min(items, self._receiver.post(signal, request))
        self._stats.pushed(signal, items - rejected)
        if rejected:
            self._stats.pushed(signal, rejected, "rejected")

    def _failed(self, error: Refused) -> None:
        """Waits longer after each failure in a row, at most for an interval unless the receiver asks for more."""
        self._failures += 1
        longest = min(self._interval, MIN_BACKOFF_SECONDS * 2.0 ** min(self._failures, 16))
        pause = self._interval if error.retry_seconds is None else longest * random.uniform(0.5, 1.0)
        asked = min(MAX_WAIT_SECONDS, error.retry_seconds or 0.0)
        self._not_before = time.monotonic() + max(pause, asked)
        self._warn(f"did not take an export: {error}")

    def _warn(self, what: str) -> None:
        if what not in self._warned and len(self._warned) < MAX_WARNINGS:
            self._warned.add(what)
            log.warning(
                "the OTLP receiver at %s %s; the job is not affected, and further failures are only counted",
                self._receiver.endpoint, what,
            )  # fmt: skip


def _reason(error: Refused) -> str:
    return "unreachable" if error.status is None else "refused"
