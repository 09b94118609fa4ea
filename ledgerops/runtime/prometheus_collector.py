"""The families of /metrics for an application that already serves a prometheus_client registry of its own.

example: `REGISTRY.register(watch.collector())`
"""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate
from typing import Any

from prometheus_client.core import Metric
from prometheus_client.registry import Collector as Base

from ledgerops.metrics import openmetrics_kind
from ledgerops.metrics.model import Metric as Described
from ledgerops.runtime.exposition import SUFFIX
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


def _family(metric: Described[Any], parts: Sequence[tuple[SharedLabels, Family]], now: float) -> Metric:
    kind = openmetrics_kind(metric)
    built = Metric(metric.name.removesuffix(SUFFIX.get(kind, "")), metric.help, kind)
    for pairs, family in parts:
        shared = dict(pairs)
        if (total := family.histogram) is not None:
            counts = list(accumulate(total.counts))
            for bound, count in zip((*map(repr, total.bounds), "+Inf"), counts, strict=True):
                built.add_sample(f"{metric.name}_bucket", {**shared, "le": bound}, count)
            built.add_sample(f"{metric.name}_count", shared, counts[-1])
            built.add_sample(f"{metric.name}_sum", shared, total.sum)
        for labels, value in family.values(now):
            built.add_sample(metric.name, {**shared, **dict(zip(metric.labels, labels, strict=True))}, value)
    return built
