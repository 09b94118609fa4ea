"""The same families for an application that already serves a prometheus_client registry of its own.

example: `REGISTRY.register(watch.collector())`
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import accumulate
from typing import Any, cast

from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    InfoMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector as Base

from ledgerops.metrics import DRIVER_METRICS, QUERY_METRICS, VERDICT_METRICS
from ledgerops.runtime.snapshot import Family, Snapshot

PER_QUERY: tuple[Any, ...] = (*QUERY_METRICS, *VERDICT_METRICS)


class Collector(Base):
    """Builds the families from `snapshot()` at each scrape and keeps none: what is gone vanishes by itself."""

    def __init__(self, snapshot: Callable[[], Snapshot], clock: Callable[[], float] = time.time) -> None:
        self._snapshot, self._clock = snapshot, clock

    def describe(self) -> Iterable[Metric]:
        """Nothing: registering must not collect."""
        return ()

    def collect(self) -> Iterator[Metric]:
        snapshot, now = self._snapshot(), self._clock()
        for metric in PER_QUERY:
            found = {
                query: each.families[metric.name]
                for query, each in sorted(snapshot.queries.items())
                if metric.name in each.families
            }
            if found:
                yield _family(found, ("query",), now)
        for metric in DRIVER_METRICS:
            if metric.name in snapshot.driver:
                yield _family({"": snapshot.driver[metric.name]}, (), now)


def _family(found: Mapping[str, Family], outer: tuple[str, ...], now: float) -> Metric:
    metric = next(iter(found.values())).metric
    labels = (*outer, *metric.labels)
    made: Any  # the families' add_metric take different arguments
    match metric.kind:
        case "counter":
            made = CounterMetricFamily(metric.name.removesuffix("_total"), metric.help, labels=labels)
        case "info":
            made = InfoMetricFamily(metric.name.removesuffix("_info"), metric.help, labels=outer)
        case "histogram":
            made = HistogramMetricFamily(metric.name, metric.help, labels=labels)
        case _:
            made = GaugeMetricFamily(metric.name, metric.help, labels=labels)
    for query, family in found.items():
        own = [query] if outer else []
        if family.histogram is not None:
            total = family.histogram
            bounds = [*(repr(bound) for bound in total.bounds), "+Inf"]
            made.add_metric(own, list(zip(bounds, accumulate(total.counts), strict=True)), total.sum)
        for values, value in family.series:
            if metric.kind == "info":
                made.add_metric(own, dict(zip(metric.labels, values, strict=True)))
            else:
                value = max(0.0, now - value) if metric.age else value
                made.add_metric([*own, *values], value)
    return cast(Metric, made)
