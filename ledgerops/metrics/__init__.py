"""Every series ledgerops exports, defined once; exporter, dashboards, alerts and docs are made from METRICS.

GENERATOR_METRICS are those of `ledgerops load`, which has an endpoint of its own.
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable
from typing import Any, Self

from ledgerops.metrics import (
    connectors,
    event_time,
    generator,
    identity,
    integrity,
    latency,
    pressure,
    resources,
    self_watch,
    skew,
    state,
    tables,
    throughput,
    verdict,
)
from ledgerops.metrics.model import HistogramTotal, Labels, Metric
from ledgerops.model.records import Progress, TableCommit

QUERY_METRICS = (
    *identity.METRICS, *throughput.METRICS, *latency.METRICS, *event_time.METRICS, *pressure.METRICS,
    *connectors.METRICS, *tables.METRICS, *state.METRICS, *skew.METRICS, *integrity.METRICS,
)  # fmt: skip
VERDICT_METRICS = verdict.METRICS
DRIVER_METRICS = resources.METRICS
SELF_METRICS = self_watch.METRICS
GENERATOR_METRICS = generator.METRICS
METRICS: tuple[Metric[Any], ...] = (
    *QUERY_METRICS, *VERDICT_METRICS, *DRIVER_METRICS, *SELF_METRICS, *GENERATOR_METRICS,
)  # fmt: skip
NAMES = frozenset(metric.name for metric in METRICS)
PER_BATCH = tuple((metric.name, metric.per_batch) for metric in QUERY_METRICS if metric.per_batch is not None)


def openmetrics_kind(metric: Metric[Any]) -> str:
    """The kind in OpenMetrics, where an info family drops `_info` from its name: a gauge where that name is taken."""
    return "gauge" if metric.kind == "info" and metric.name.removesuffix("_info") in NAMES else metric.kind


class RunningTotals:
    """Running totals of one query: what each batch adds is added once, and restarts go on counting. `counters` by
    family name and label values, `histograms` by family name."""

    def __init__(self) -> None:
        self.counters: defaultdict[str, defaultdict[Labels, float]] = defaultdict(lambda: defaultdict(float))
        self.histograms: dict[str, HistogramTotal] = {}
        self._copy: Self | None = None  # None as soon as something was added
        self.families: dict[str, Any] | None = None  # of a copy, as whoever first published it made them

    def copy(self) -> Self:
        """One that does not change when this one does; the same one until something is added."""
        if self._copy is None:
            self._copy = type(self)()
            self._copy.counters.update({name: totals.copy() for name, totals in self.counters.items()})
            self._copy.histograms = {
                name: HistogramTotal(total.bounds, list(total.counts), total.sum, total.exemplar)
                for name, total in self.histograms.items()
            }
        return self._copy

    def add(self, progress: Progress) -> None:
        """Adds one batch; the caller sees to it that no batch comes twice."""
        self._copy = None
        for name, added in PER_BATCH:
            totals = self.counters[name]
            for labels, increment in added(progress).items():
                totals[labels] += increment
        for name, labels, increment in state.added(progress):
            self.counters[name][labels] += increment
        exemplar = {"batch_id": str(progress.batch_id), "run_id": progress.run_id}
        durations = self._histogram(latency.BATCH_DURATION.name, latency.BATCH_BOUNDS)
        durations.counts[bisect_left(durations.bounds, progress.duration)] += 1
        durations.sum += progress.duration
        durations.exemplar = (progress.duration, exemplar)
        for counts, total in latency.event_latencies(progress):
            latencies = self._histogram(latency.EVENT_LATENCY.name, latency.EVENT_BOUNDS)
            latencies.counts = [old + new for old, new in zip(latencies.counts, counts, strict=True)]
            latencies.sum += total

    def add_commits(self, commits: Iterable[TableCommit]) -> None:
        """Adds what batches have committed to the sink's table; the caller sees to it that no commit comes twice."""
        self._copy = None
        for commit in commits:
            for metric, count in tables.counts(commit):
                self.counters[metric.name][()] += count

    def _histogram(self, name: str, bounds: tuple[float, ...]) -> HistogramTotal:
        if name not in self.histograms:
            self.histograms[name] = HistogramTotal(bounds)
        return self.histograms[name]
