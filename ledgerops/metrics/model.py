"""What a metric is. The catalogue is `ledgerops.metrics.METRICS`."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Generic, Literal, TypeVar

from ledgerops.model.records import Progress

Labels = tuple[str, ...]  # label values in the order of Metric.labels
Series = Mapping[Labels, float]
Subject = TypeVar("Subject")


@dataclass(frozen=True, slots=True)
class Metric(Generic[Subject]):
    """One exported family. No value means no sample: `read` leaves out what is unknown.

    A gauge (or a counter that the subject already counts) has `read`. A counter or histogram made of batches has
    `per_batch`: what one batch adds, summed once for each (run id, batch id). With `age`, `read` gives the instant
    since which the value grows, and the exporter publishes now minus it, never negative: such a gauge goes on growing
    while nothing happens. `survives` keeps a family after the query has ended; of the others the counters and
    histograms stay for a while, and the gauges vanish at once. An `unbudgeted` family is never cut by the budget of
    series.
    """

    name: str  # ledgerops_<what>_<unit>; _total for counters, _info for metadata
    help: str  # one sentence; also the panel's description
    labels: tuple[str, ...] = ()  # besides `query`, which every series of a query has
    read: Callable[[Subject], Series] | None = None
    per_batch: Callable[[Progress], Series] | None = None
    bounds: tuple[float, ...] | None = None  # upper bounds of a histogram's buckets, without +Inf
    age: bool = False
    survives: bool = False
    unbudgeted: bool = False
    kind: Literal["gauge", "counter", "histogram", "info"] = field(init=False)

    def __post_init__(self) -> None:
        endings = {"total": "counter", "info": "info"}
        kind = endings.get(self.name.rsplit("_", 1)[-1], "gauge") if self.bounds is None else "histogram"
        object.__setattr__(self, "kind", kind)


def known(value: float | None) -> Series:
    """One sample without labels; none where nothing is known."""
    return {} if value is None else {(): float(value)}


@dataclass(slots=True)
class HistogramTotal:
    """Counts by bucket (not cumulative; one more than the bounds, for +Inf) and the sum of the values."""

    bounds: tuple[float, ...]
    counts: list[int] = field(default_factory=list)
    sum: float = 0.0
    exemplar: tuple[float, Mapping[str, str]] | None = None  # the newest value with its labels

    def __post_init__(self) -> None:
        self.counts = self.counts or [0] * (len(self.bounds) + 1)
