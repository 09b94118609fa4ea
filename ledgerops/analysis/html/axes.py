"""Axes of a plot: a linear scale, and ticks at round values, instants and elapsed times."""

import math
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from ledgerops.model.spark_progress import MAX_EPOCH_SECONDS

MAX_AXIS_VALUE = 1e15  # no number of Spark's is larger
MAX_INSTANTS, MAX_ELAPSED = 8, 10  # ticks of a time axis: elapsed times are shorter to write
# distances between two ticks of a time axis
TIME_STEPS_SECONDS = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400)
Tick = tuple[float, str]  # position on the axis, label


class Scale(NamedTuple):
    """Linear, from the values [low, high] to the coordinates [start, end]. Values outside are drawn at the edge."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        if self.high <= self.low:
            return self.start
        share = (min(max(value, self.low), self.high) - self.low) / (self.high - self.low)
        return self.start + share * (self.end - self.start)


def axis_top(values: Sequence[float], least: float) -> float:
    """The upper end of an axis that starts at 0: the largest value (at least `least`), rounded up to an even number."""
    top = min(max([least, *values]), MAX_AXIS_VALUE)
    size = 10.0 ** math.floor(math.log10(top))
    return next(step * size for step in (1, 1.2, 1.6, 2, 3, 4, 5, 6, 8, 10) if step * size >= top * 0.9999)


def value_ticks(top: float, show: Callable[[float], str]) -> list[Tick]:
    """Zero, the middle and the top."""
    return [(0.0, "0"), (top / 2, show(top / 2)), (top, show(top))]


def utc_ticks(low: float, high: float) -> list[Tick]:
    """About MAX_INSTANTS round instants in UTC between two epoch seconds."""
    high = min(high, MAX_EPOCH_SECONDS)  # an axis may end later than there are dates
    step = _step(high - low, MAX_INSTANTS)
    pattern = "%H:%M:%S" if step < 60 else "%H:%M" if step < 86_400 else "%m-%d"
    first = math.ceil(low / step) * step
    instants = (first + step * number for number in range(int((high - first) // step) + 1))
    return [(at, datetime.fromtimestamp(at, UTC).strftime(pattern)) for at in instants]


def elapsed_ticks(low: float, high: float, unit_seconds: float = 1.0) -> list[Tick]:
    """Round times since `low`, labelled in a unit of so many seconds."""
    step = _step(high - low, MAX_ELAPSED)
    return [(low + n * step, f"{n * step / unit_seconds:g}") for n in range(int((high - low) // step) + 1)]


def _step(span: float, most: int) -> float:
    """Seconds between two ticks, so that there are at most about `most`."""
    span = max(span, 1e-9)
    longest = TIME_STEPS_SECONDS[-1] * math.ceil(span / TIME_STEPS_SECONDS[-1] / most)
    return next((step for step in TIME_STEPS_SECONDS if span / step <= most), longest)
