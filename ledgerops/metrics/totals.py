"""Running totals of one query: what each batch adds is added once, and restarts go on counting."""

from __future__ import annotations

from bisect import bisect_left

from ledgerops.metrics import PER_BATCH, latency
from ledgerops.metrics.model import HistogramTotal, Labels
from ledgerops.model.records import Progress


class Tally:
    """`counters` by family name and label values, `histograms` by family name."""

    def __init__(self) -> None:
        self.counters: dict[str, dict[Labels, float]] = {}
        self.histograms: dict[str, HistogramTotal] = {}

    def add(self, progress: Progress) -> None:
        """Adds one batch; the caller sees to it that no batch comes twice."""
        for metric in PER_BATCH:
            assert metric.per_batch is not None
            totals = self.counters.setdefault(metric.name, {})
            for labels, increment in metric.per_batch(progress).items():
                totals[labels] = totals.get(labels, 0.0) + increment
        exemplar = {"batch_id": str(progress.batch_id), "run_id": progress.run_id}
        durations = self._histogram(latency.BATCH_DURATION.name, latency.BATCH_BOUNDS)
        durations.counts[bisect_left(durations.bounds, progress.duration)] += 1
        durations.sum += progress.duration
        durations.exemplar = (progress.duration, exemplar)
        for counts, total in latency.event_latencies(progress):
            latencies = self._histogram(latency.EVENT_LATENCY.name, latency.EVENT_BOUNDS)
            latencies.counts = [old + new for old, new in zip(latencies.counts, counts, strict=True)]
            latencies.sum += total

    def _histogram(self, name: str, bounds: tuple[float, ...]) -> HistogramTotal:
        if name not in self.histograms:
            self.histograms[name] = HistogramTotal(bounds)
        return self.histograms[name]
