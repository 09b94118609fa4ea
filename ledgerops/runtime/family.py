"""One metric with its series, as they are published: numbers only, labels that Prometheus takes, in a stable order."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from hashlib import blake2b
from typing import Any, NamedTuple

from ledgerops.metrics.model import HistogramTotal, Labels, Metric

MAX_LABEL_BYTES = 256  # Prometheus refuses a whole scrape for one label value above its limit, which is in bytes
HASH_BYTES = 8  # of a value that is cut: two that begin alike stay two
LABELS = 10_000  # sets of label values that are remembered as they are published: each batch has the same ones again
ORDERS = 1_000  # families of them whose order is remembered
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


def series_of(metric: Metric[Any], series: Mapping[Labels, float]) -> Sequence[tuple[Labels, float]]:
    """The series that can be published, in a stable order: numbers only, labels of bounded length."""
    return tuple(
        [
            (clean, float(value))
            for clean, labels in _ordered(tuple(series), len(metric.labels))
            if math.isfinite(value := series[labels]) or (metric.age and value > 0)
        ]
    )


@lru_cache(maxsize=ORDERS)
def _ordered(all_labels: tuple[Labels, ...], width: int) -> Sequence[tuple[Labels, Labels]]:
    """Labels as they are published, and as they were given, in the order of the former."""
    clean = {_clean(labels): labels for labels in all_labels if len(labels) == width}
    return sorted(clean.items(), key=lambda item: _natural(item[0])) if len(clean) > 1 else tuple(clean.items())


@lru_cache(maxsize=LABELS)
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


@lru_cache(maxsize=LABELS)
def _natural(labels: Labels) -> list[tuple[int, int | str]]:
    """Partition 10 comes after partition 9."""
    parts = [part for label in labels for part in DIGITS.split(label) if part]
    return [(0, int(part)) if part.isdecimal() else (1, part) for part in parts]
