"""One metric with its series, as they are published: numbers only, labels that Prometheus takes, in a stable order.

And the budget of series: what is left out for a query, and for a driver, so that Prometheus takes the rest. Of the
series by partition, those of the worst partitions stay. A family marked `unbudgeted` is never cut: sums and maxima of a
query hold for all of its partitions.
"""

import math
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from hashlib import blake2b
from operator import itemgetter
from typing import Any, NamedTuple

from ledgerops.metrics.model import HistogramTotal, Labels, Metric
from ledgerops.metrics.pressure import BACKLOG, LAG

MAX_LABEL_BYTES = 256  # Prometheus rejects a whole scrape for one longer label value
HASH_BYTES = 8  # of a value that is cut, so that two that begin alike stay distinct
# label sets that are cached as published: each batch has the same ones again
MAX_LABEL_SETS = 10_000
MAX_ORDERED_SETS = 1_000  # families whose order of label sets is cached
RANKING = (BACKLOG.name, LAG.name)  # the first of them that is present says which partitions are worst
DIGITS = re.compile(r"(\d+)")


class Family(NamedTuple):
    """One metric with its series in a stable order. For an `age` metric the values are instants."""

    metric: Metric[Any]
    series: Sequence[tuple[Labels, float]] = ()
    histogram: HistogramTotal | None = None

    @property
    def size(self) -> int:
        """How many series it exports."""
        return len(self.histogram.counts) + 2 if self.histogram else len(self.series)

    def values(self, now: float) -> Sequence[tuple[Labels, float]]:
        """The series with their values at `now` (seconds since the epoch)."""
        if not self.metric.age:
            return self.series
        return [(labels, max(0.0, now - since)) for labels, since in self.series]


def series_of(metric: Metric[Any], series: Mapping[Labels, float]) -> Sequence[tuple[Labels, float]]:
    """The series that can be published, in a stable order: numbers only, labels of bounded length."""
    kept = [
        (clean, float(value))
        for clean, labels in _ordered(tuple(series), len(metric.labels))
        if math.isfinite(value := series[labels]) or (metric.age and value > 0)
    ]
    return tuple(kept)


@lru_cache(maxsize=MAX_ORDERED_SETS)
def _ordered(all_labels: tuple[Labels, ...], width: int) -> Sequence[tuple[Labels, Labels]]:
    """Labels as they are published, and as they were given, in the order of the former."""
    clean = {_clean(labels): labels for labels in all_labels if len(labels) == width}
    return sorted(clean.items(), key=lambda item: _natural(item[0])) if len(clean) > 1 else tuple(clean.items())


@lru_cache(maxsize=MAX_LABEL_SETS)
def _clean(labels: Labels) -> Labels:
    return tuple(clean_label(value) for value in labels)


def clean_label(value: str) -> str:
    """A label value that can be encoded, in at most MAX_LABEL_BYTES bytes of UTF-8; a cut one ends in a hash."""
    if len(value) <= MAX_LABEL_BYTES and value.isascii():
        return value
    encoded = value.encode("utf-8", "replace")
    if len(encoded) > MAX_LABEL_BYTES:
        mark = blake2b(encoded, digest_size=HASH_BYTES).hexdigest()
        encoded = encoded[: MAX_LABEL_BYTES - len(mark) - 1].decode("utf-8", "ignore").encode() + f"~{mark}".encode()
    return encoded.decode("utf-8")


@lru_cache(maxsize=MAX_LABEL_SETS)
def _natural(labels: Labels) -> list[tuple[int, int | str]]:
    """Partition 10 comes after partition 9."""
    parts = [part for label in labels for part in DIGITS.split(label) if part]
    return [(0, int(part)) if part.isdecimal() else (1, part) for part in parts]


def fit_families(families: Sequence[Family], budget: int) -> tuple[list[Family], int]:
    """The families, the widest cut until there are at most `budget` series; and how many series were left out. Narrow
    families stay whole. The wide ones keep the same number of series, and those of equal labels the same ones."""
    uncut = [family for family in families if family.metric.unbudgeted]
    budgeted = [family for family in families if not family.metric.unbudgeted]
    total = sum(family.size for family in budgeted)
    if total <= budget:
        return list(families), 0
    limit = fair_limit([family.size for family in budgeted], budget)
    worst: dict[tuple[str, ...], set[Labels]] = {}
    kept = []
    for family in budgeted:
        if family.size <= limit:
            kept.append(family)
        elif family.histogram is None and limit > 0:
            keys = family.metric.labels
            if keys not in worst:
                worst[keys] = _worst([each for each in budgeted if each.metric.labels == keys], limit)
            chosen = tuple([item for item in family.series if item[0] in worst[keys]])
            kept.append(family._replace(series=chosen))
    return [*uncut, *kept], total - sum(family.size for family in kept)


def fair_limit(sizes: Sequence[int], budget: int) -> int:
    """The largest size that each may have, where those that need less leave the rest to the others."""
    limit, left = 0, budget
    ordered = sorted(sizes)
    for index, size in enumerate(ordered):
        limit = left // (len(ordered) - index)
        if size > limit:
            break
        left -= size
    return max(0, limit)


def _worst(families: Sequence[Family], count: int) -> set[Labels]:
    """The labels of the largest values, or of the oldest instants in an `age` metric; ties in the order of labels."""
    by_name = {family.metric.name: family for family in families}
    ranking = next((by_name[name] for name in RANKING if name in by_name), families[0])
    ranked = sorted(ranking.series, key=itemgetter(1), reverse=not ranking.metric.age)
    return {labels for labels, _ in ranked[:count]}
