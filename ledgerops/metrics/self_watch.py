"""ledgerops about itself: what it costs, and what it missed."""

from __future__ import annotations

from ledgerops.metrics.model import Metric
from ledgerops.model.self_counts import SelfStats
from ledgerops.version import __version__

# there before the first error: an alert on an increase needs a series to increase
NO_ERRORS = dict.fromkeys(
    ("listener", "parse", "recording", "judge", "snapshot", "tasks", "plan", "host", "watchdog", "observer"), 0
)

NO_REFUSALS = dict.fromkeys(("address", "busy", "slow", "threads"), 0)

METRICS: tuple[Metric[SelfStats], ...] = (
    Metric(
        "ledgerops_build_info",
        "The version of ledgerops that serves this endpoint.",
        labels=("version",),
        read=lambda stats: {(__version__,): 1.0},
    ),
    Metric(
        "ledgerops_listener_events_total",
        "Events that Spark's listener bus delivered.",
        labels=("event",),
        read=lambda stats: {(event,): float(count) for event, count in stats.events.items()},
    ),
    Metric(
        "ledgerops_listener_queue_size",
        "Events that wait for the worker; good is near 0.",
        read=lambda stats: {(): float(stats.queue_size)},
    ),
    Metric(
        "ledgerops_listener_dropped_total",
        "Events thrown away because the queue was full; good is 0.",
        read=lambda stats: {(): float(stats.dropped)},
    ),
    Metric(
        "ledgerops_callback_seconds_total",
        "Time spent in Spark's listener thread; nearly all of it fetches the event's JSON.",
        read=lambda stats: {(): stats.callback_seconds},
    ),
    Metric("ledgerops_callbacks_total", "Listener callbacks served.", read=lambda stats: {(): float(stats.callbacks)}),
    Metric(
        "ledgerops_worker_seconds_total",
        "Time of the worker thread by what it did: record, parse, judge, snapshot.",
        labels=("step",),
        read=lambda stats: {(step,): seconds for step, seconds in stats.worker_seconds.items()},
    ),
    Metric(
        "ledgerops_collector_errors_total",
        "Failures of a collector, the recording, a rule or a metric; the job is not touched by them.",
        labels=("collector",),
        read=lambda stats: {(name,): float(count) for name, count in ({**NO_ERRORS, **stats.collector_errors}).items()},
    ),
    Metric(
        "ledgerops_series_dropped_total",
        "Series left out because a query reached its budget, at most at one time; see the setting series_per_query.",
        read=lambda stats: {(): float(stats.series_dropped)},
    ),
    Metric(
        "ledgerops_scrape_seconds",
        "How long the previous scrape of this endpoint took.",
        read=lambda stats: {} if stats.scrape_seconds is None else {(): stats.scrape_seconds},
    ),
    Metric(
        "ledgerops_http_requests_refused_total",
        "Requests to this endpoint that were cut or turned away: slow, too many of one address, or too many at a time.",
        labels=("reason",),
        read=lambda stats: {(name,): float(count) for name, count in {**NO_REFUSALS, **stats.requests_refused}.items()},
        unused="Grows when a client other than Prometheus takes the places of the exporter; it is for looking up.",
    ),
    Metric(
        "ledgerops_recording_bytes_total",
        "Bytes written to the recording.",
        read=lambda stats: {(): float(stats.recording_bytes)},
    ),
)
