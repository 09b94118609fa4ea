"""Scales of a plot: from instants and values to places, and the ticks that people read."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

HIGHEST = 1e15  # an axis that ends here is drawn: no number of Spark's is larger
STEPS = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400)  # seconds


class Scale(NamedTuple):
    """Linear, from [low, high] to [start, end]; what lies outside is drawn at the edge."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        if self.high <= self.low:
            return self.start
        share = (min(max(value, self.low), self.high) - self.low) / (self.high - self.low)
        return self.start + share * (self.end - self.start)


def ceiling(values: Sequence[float], least: float) -> float:
    """The upper end of an axis from 0: the largest value, rounded up to what makes even ticks."""
    top = min(max([least, *values]), HIGHEST)
    size = 10.0 ** math.floor(math.log10(top))
    return next(step * size for step in (1, 1.2, 1.6, 2, 3, 4, 5, 6, 8, 10) if step * size >= top * 0.9999)


def ticks(top: float, show: Callable[[float], str]) -> list[tuple[float, str]]:
    """Zero, the middle and the top with their labels."""
    return [(0.0, "0"), (top / 2, show(top / 2)), (top, show(top))]


def instants(low: float, high: float, most: int = 8) -> list[tuple[float, str]]:
    """Round instants in UTC: with seconds where they are closer than a minute."""
    span = max(high - low, 1e-9)
    step = next((step for step in STEPS if span / step <= most), STEPS[-1] * math.ceil(span / STEPS[-1] / most))
    form = "%H:%M:%S" if step < 60 else "%H:%M" if step < 86_400 else "%m-%d"
    first = math.ceil(low / step) * step
    count = int((high - first) // step) + 1
    return [
        (at, datetime.fromtimestamp(at, UTC).strftime(form)) for at in (first + step * each for each in range(count))
    ]
