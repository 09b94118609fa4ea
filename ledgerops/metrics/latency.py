"""Latency: batches, their phases, and the event-time latency that `ledgerops.instrument` observes."""

from collections.abc import Iterator

from ledgerops.metrics.model import Metric, known
from ledgerops.model.observed_metrics import OBSERVATION
from ledgerops.model.records import Progress
from ledgerops.signals.query_view import QueryView

# Buckets reach from a trigger that had nothing to do to one that missed a ten-minute interval.
BATCH_BOUNDS = (0.1, 0.25, 0.5, 1.0, 2.0, 3.0, 5.0, 7.5, 10.0, 15.0, 30.0, 60.0, 120.0, 300.0, 600.0)
# A tuned micro-batch query has about 0.3 s at the median (Spark's own real-time-mode suite); late data take minutes.
EVENT_BOUNDS = (0.25, 0.5, 1.0, 2.0, 3.0, 5.0, 7.5, 10.0, 15.0, 30.0, 60.0, 120.0, 300.0, 900.0, 3600.0)
LE, SUM = "latency_le_", "latency_sum"  # columns of `instrument`: rows at or under bound i, and the sum of the seconds

BATCH_DURATION: Metric[QueryView] = Metric("ledgerops_batch_duration_seconds",
    "How long each micro-batch took, from trigger to commit.", bounds=BATCH_BOUNDS)  # fmt: skip
EVENT_LATENCY: Metric[QueryView] = Metric("ledgerops_event_latency_seconds",
    "How old each row was by its event time when its batch processed it; needs ledgerops.instrument.",
    bounds=EVENT_BOUNDS)  # fmt: skip
PHASE_SECONDS: Metric[QueryView] = Metric("ledgerops_batch_phase_seconds_total",
    "Batch time by phase; the phases of a batch add up to a little less than its duration.", labels=("phase",),
    per_batch=lambda batch: {(phase,): seconds for phase, seconds in batch.phases.items()})  # fmt: skip
LAST_BATCH: Metric[QueryView] = Metric("ledgerops_last_batch_duration_seconds", "How long the newest micro-batch took.",
    read=lambda view: {(): view.last.duration} if view.last else {})  # fmt: skip
LAST_PROGRESS: Metric[QueryView] = Metric("ledgerops_last_progress_timestamp_seconds",
    "When the newest micro-batch ended.", read=lambda view: known(view.history.last_progress),
    survives=True)  # fmt: skip
LAST_SEEN: Metric[QueryView] = Metric("ledgerops_last_seen_timestamp_seconds",
    "When the query last reported a start, a batch, or that it is idle.",
    read=lambda view: known(view.history.last_seen), survives=True)  # fmt: skip
RUNNING: Metric[QueryView] = Metric("ledgerops_batch_running_seconds",
    "How long the current trigger has been running, as seen by the watchdog; absent between triggers.",
    read=lambda view: {(): view.history.running.since} if view.history.running else {}, age=True)  # fmt: skip
RECORD_LATENCY: Metric[QueryView] = Metric("ledgerops_record_latency_seconds",
    "Latency of records in real-time mode, by quantile: in the query (processing), in the source before it "
    "(source_queue), or both (end_to_end); only where the platform reports it, as Databricks does.",
    labels=("kind", "quantile"), read=lambda view: view.last.record_latencies if view.last else {})  # fmt: skip
METRICS = (BATCH_DURATION, EVENT_LATENCY, RECORD_LATENCY, PHASE_SECONDS, LAST_BATCH, LAST_PROGRESS, LAST_SEEN, RUNNING)


def event_latencies(batch: Progress) -> Iterator[tuple[list[int], float]]:
    """Bucket counts (not cumulative, +Inf last) and the sum of seconds of each observation that `instrument` made."""
    for name, row in batch.observed.items():
        if name != OBSERVATION and not name.startswith(f"{OBSERVATION}_"):
            continue
        cumulative = [count for i in range(len(EVENT_BOUNDS) + 1) if isinstance(count := row.get(f"{LE}{i}"), int)]
        total = row.get(SUM)
        if len(cumulative) <= len(EVENT_BOUNDS) or not isinstance(total, int | float):
            continue  # an empty batch observes nulls
        counts = [later - earlier for earlier, later in zip([0, *cumulative], cumulative, strict=False)]
        if all(count >= 0 for count in counts):
            yield counts, float(total)
