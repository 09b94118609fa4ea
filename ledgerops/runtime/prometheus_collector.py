"""The families of /metrics for an application that already serves a prometheus_client registry of its own.

example: `REGISTRY.register(watch.collector())`
"""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
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

from ledgerops.metrics import openmetrics_kind
from ledgerops.runtime.family import Family
from ledgerops.runtime.snapshot import Published, SharedLabels


class Collector(Base):
    """Builds the families at each scrape and keeps none, so the series of an ended query disappear by themselves.
    `families` returns those that /metrics serves; `clock` returns seconds since the epoch."""

    def __init__(self, families: Callable[[], Iterable[Published]], clock: Callable[[], float] = time.time) -> None:
        self._families, self._clock = families, clock

    def describe(self) -> Iterable[Metric]:
        """Nothing: registering must not collect."""
        return ()

    def collect(self) -> Iterator[Metric]:
        """Every family of /metrics, with values of now."""
        now = self._clock()
        for metric, parts in self._families():
            yield _family(metric, parts, now)


def _family(metric: Any, parts: Sequence[tuple[SharedLabels, Family]], now: float) -> Metric:
    shared = [key for key, _ in parts[0][0]]
    labels = (*shared, *metric.labels)
    built: Any  # the families' add_metric take different arguments
    kind = openmetrics_kind(metric)
    match kind:
        case "counter":
            built = CounterMetricFamily(metric.name.removesuffix("_total"), metric.help, labels=labels)
        case "info":
            built = InfoMetricFamily(metric.name.removesuffix("_info"), metric.help, labels=shared)
        case "histogram":
            built = HistogramMetricFamily(metric.name, metric.help, labels=labels)
        case _:
            built = GaugeMetricFamily(metric.name, metric.help, labels=labels)
    for pairs, family in parts:
        shared_values = [value for _, value in pairs]
        if family.histogram is not None:
            total = family.histogram
            bounds = [*(repr(bound) for bound in total.bounds), "+Inf"]
            built.add_metric(shared_values, list(zip(bounds, accumulate(total.counts), strict=True)), total.sum)
        for values, value in family.values(now):
            if kind == "info":
                built.add_metric(shared_values, dict(zip(metric.labels, values, strict=True)))
            else:
                built.add_metric([*shared_values, *values], value)
    return cast(Metric, built)
