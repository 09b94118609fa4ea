"""Metrics of ledgerops itself: its cost, and what it missed, counted by listener, worker, collectors and exporter."""

from __future__ import annotations

import threading
from collections import Counter
from copy import copy
from dataclasses import dataclass, field, fields

from ledgerops.metrics.model import Metric, known
from ledgerops.version import __version__


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
    recording_bytes: int = 0
    requests_refused: Counter[str] = field(default_factory=Counter)  # by reason: see NO_REFUSALS
    exported: Counter[str] = field(default_factory=Counter)  # by OTLP's signal: data points, log records
    not_exported: Counter[tuple[str, str]] = field(default_factory=Counter)  # by signal and reason
    lock: threading.Lock = field(default_factory=threading.Lock, repr=False, compare=False)

    def error(self, collector: str) -> None:
        """Counts one failure of a collector. Safe for several threads."""
        with self.lock:
            self.collector_errors[collector] += 1

    def refuse(self, reason: str) -> None:
        """Counts one refused request by its reason. Safe for several threads."""
        with self.lock:
            self.requests_refused[reason] += 1

    def pushed(self, signal: str, count: int, reason: str | None = None) -> None:
        """Counts what an OTLP receiver took, or for which `reason` it did not. Safe for several threads."""
        with self.lock:
            if reason is None:
                self.exported[signal] += count
            else:
                self.not_exported[signal, reason] += count

    def spent(self, step: str, seconds: float) -> None:
        """Adds seconds of the worker to a step. Safe for several threads."""
        with self.lock:
            self.worker_seconds[step] = self.worker_seconds.get(step, 0.0) + seconds

    def copy(self) -> SelfStats:
        """A copy of the present values."""
        with self.lock:
            return SelfStats(
                **{each.name: copy(getattr(self, each.name)) for each in fields(self) if each.name != "lock"}
            )


# exported before the first error: an alert on an increase needs a series that increases
NO_ERRORS = dict.fromkeys(
    ("listener", "parse", "recording", "judge", "snapshot", "tasks", "plan", "host", "watchdog", "observer"), 0
)

NO_REFUSALS = dict.fromkeys(("address", "busy", "slow", "threads"), 0)
METRICS: tuple[Metric[SelfStats], ...] = (
    Metric("ledgerops_build_info", "The version of ledgerops that serves this endpoint.", labels=("version",),
        read=lambda stats: {(__version__,): 1.0}),
    Metric("ledgerops_listener_events_total", "Events that Spark's listener bus delivered.", labels=("event",),
        read=lambda stats: {(event,): float(count) for event, count in stats.events.items()}),
    Metric("ledgerops_listener_queue_size", "Events that wait for the worker; should be near 0.",
        read=lambda stats: {(): float(stats.queue_size)}),
    Metric("ledgerops_listener_dropped_total", "Events dropped because the queue was full; should be 0.",
        read=lambda stats: {(): float(stats.dropped)}),
    Metric("ledgerops_callback_seconds_total",
        "Time spent in Spark's listener thread; nearly all of it fetches the event's JSON.",
        read=lambda stats: {(): stats.callback_seconds}),
    Metric("ledgerops_callbacks_total", "Listener callbacks served.", read=lambda stats: {(): float(stats.callbacks)}),
    Metric("ledgerops_worker_seconds_total",
        "Time of the worker thread by what it did: record, parse, judge, snapshot.", labels=("step",),
        read=lambda stats: {(step,): seconds for step, seconds in stats.worker_seconds.items()}),
    Metric(
        "ledgerops_collector_errors_total",
        "Failures of a collector, the recording, a rule or a metric; the job is not affected.", labels=("collector",),
        read=lambda stats: {(name,): float(count) for name, count in ({**NO_ERRORS, **stats.collector_errors}).items()},
    ),
    Metric("ledgerops_series_dropped_total",
        "Series left out because a query reached its budget (highest number so far); see the setting series_per_query.",
        read=lambda stats: {(): float(stats.series_dropped)}),
    Metric("ledgerops_scrape_seconds", "How long the previous scrape of this endpoint took.",
        read=lambda stats: known(stats.scrape_seconds)),
    Metric("ledgerops_http_requests_refused_total",
        "Requests to this endpoint that were cut off or rejected: slow, or too many from one address or at once.",
        labels=("reason",),
        read=lambda stats: {(why,): float(count) for why, count in {**NO_REFUSALS, **stats.requests_refused}.items()}),
    Metric("ledgerops_otlp_exported_total",
        "Data points (signal metrics) and log records (signal logs) that the OTLP receiver took.", labels=("signal",),
        read=lambda stats: {(signal,): float(count) for signal, count in stats.exported.items()}),
    Metric("ledgerops_otlp_dropped_total",
        "Data points and log records that the OTLP receiver did not take; totals arrive with the next export.",
        labels=("signal", "reason"),
        read=lambda stats: {labels: float(count) for labels, count in stats.not_exported.items()}),
    Metric("ledgerops_recording_bytes_total", "Bytes written to the recording.",
        read=lambda stats: {(): float(stats.recording_bytes)}),
)  # fmt: skip
