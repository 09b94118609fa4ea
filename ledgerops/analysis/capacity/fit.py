"""Batch time = overhead + rows / rate, by a line that outliers hardly move, and the interval that says how sure it is.

The line is that of Theil and Sen (Sen, "Estimates of the regression coefficient based on Kendall's tau", 1968), the
interval a percentile bootstrap over the batches (Efron, 1979): what is computed of the line is computed of the lines
through BOOTSTRAP_DRAWS draws with replacement, too, and the middle CONFIDENCE_LEVEL of the results is the interval.
`docs/capacity.md` says what both hold for.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ledgerops.signals.capacity import unfit
from ledgerops.signals.theil_sen import fit_line

BOOTSTRAP_DRAWS = 400  # the ends of a 90 % interval then rest on 20 draws each; more change them by less than they mean
CONFIDENCE_LEVEL = 0.90
SEED = 0
MAX_EXTRAPOLATION = 3.0  # times the largest batch seen: beyond it a straight line is not trusted
MAX_EXTRAPOLATION_ONE_SIZE = 1.25  # the same, where all batches were of one size
MAX_SLOPES_AT_ONCE = 1_000_000  # of pairs of batches in the draws that are fitted together: 8 MB
MIN_DRIFT_BATCHES = 4  # in each third, so that a single slow batch is no drift
MIN_SLOPE_SECONDS = 1e-12  # for a row, in a draw that finds no growth: any rate that matters is lower
SOURCE = f"Theil-Sen line, {CONFIDENCE_LEVEL:.0%} interval by {BOOTSTRAP_DRAWS} bootstrap draws"
Numbers = NDArray[np.float64]


class Interval(NamedTuple):
    """A value with its interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Fit:
    """The line and its draws; `overhead` in seconds, `slope` in seconds a row."""

    overhead: float
    slope: float
    overheads: Numbers
    slopes: Numbers
    rows: tuple[int, ...]
    seconds: tuple[float, ...]
    slow: float  # the 95th percentile of batch time over the line: how much longer a slow batch takes
    trusted: float = MAX_EXTRAPOLATION  # up to this many times the largest observed batch
    source: str = SOURCE

    @property
    def drift(self) -> float | None:
        """Batch time over the line in the newest third of the batches, against the oldest third; None for few."""
        third = len(self.rows) // 3
        over = np.asarray(self.seconds) / (self.overhead + self.slope * np.asarray(self.rows, np.float64))
        return float(np.median(over[-third:]) / np.median(over[:third])) if third >= MIN_DRIFT_BATCHES else None

    @property
    def largest(self) -> int:
        """Rows of the largest batch seen."""
        return max(self.rows)

    def estimate(self, of: Callable[[Numbers, Numbers], Numbers]) -> Interval:
        """A value computed of overhead and slope, with its interval. `of` takes arrays of both."""
        drawn = of(self.overheads, self.slopes)
        tail = (1 - CONFIDENCE_LEVEL) / 2
        low, high = np.quantile(drawn, (tail, 1 - tail), method="nearest")
        value = float(of(np.array([self.overhead]), np.array([self.slope]))[0])
        return Interval(value, min(float(low), value), max(float(high), value))

    def reach(self, rows: float) -> float:
        """`rows` as a multiple of the largest observed batch."""
        return rows / self.largest


def fit(rows: Sequence[int], seconds: Sequence[float]) -> Fit | str:
    """The line through batches with rows, or in words why the data do not support one. An overhead below zero is taken
    as zero and the line laid through the origin, in the draws as well."""
    reason = unfit(rows)
    if reason is not None:
        return reason
    x, y = np.asarray(rows, np.float64), np.asarray(seconds, np.float64)
    fitted = fit_line(rows, seconds)
    assert fitted is not None, "batches of one size only"
    overhead, slope = fitted.overhead, fitted.slope
    overheads, slopes = _lines(x, y, np.random.default_rng(SEED).integers(0, len(x), (BOOTSTRAP_DRAWS, len(x))))
    certain = np.quantile(slopes, (1 - CONFIDENCE_LEVEL) / 2) > 0
    if slope <= 0 or not certain:
        return "batch time does not grow significantly with the rows"
    line = overhead + slope * x
    return Fit(
        overhead, slope, overheads, np.maximum(slopes, MIN_SLOPE_SECONDS), tuple(int(each) for each in rows),
        tuple(float(each) for each in seconds), max(1.0, float(np.quantile(y / line, 0.95))),
    )  # fmt: skip


def observed(rows: Sequence[int], seconds: Sequence[float]) -> Fit:
    """Of a saturated query whose batches are all of one size: seconds per row at that size, unknown for others."""
    x, y = np.asarray(rows, np.float64), np.asarray(seconds, np.float64)
    chosen = np.random.default_rng(SEED).integers(0, len(x), (BOOTSTRAP_DRAWS, len(x)))
    middle = float(np.median(y / x))
    return Fit(
        0.0, middle, np.zeros(BOOTSTRAP_DRAWS), np.median((y / x)[chosen], axis=1), tuple(int(each) for each in rows),
        tuple(float(each) for each in seconds), max(1.0, float(np.quantile(y / x, 0.95)) / middle),
        MAX_EXTRAPOLATION_ONE_SIZE,
        f"median of {len(x)} saturated batches of one size, {CONFIDENCE_LEVEL:.0%} interval by {BOOTSTRAP_DRAWS} "
        "bootstrap draws",
    )  # fmt: skip


def utmost_rate(overhead: Numbers, slope: Numbers, interval: float, cap: float | None) -> Numbers:
    """Rows a second, where batches may outlast their interval of so many seconds; `cap` are the most rows of one."""
    if cap is None:
        return 1 / slope
    return cap / np.maximum(interval, overhead + slope * cap)


def _lines(x: Numbers, y: Numbers, draws: NDArray[np.int64]) -> tuple[Numbers, Numbers]:
    """Overheads and slopes of the lines that `fit_line` lays through each draw, a row of places in `x` and `y`. Draws
    whose batches are all of one size have no line and are left out."""
    draws = draws[np.ptp(x[draws], axis=1) > 0]
    runs = np.subtract.outer(x, x)
    runs[runs == 0] = np.nan  # has no slope
    between = np.subtract.outer(y, y) / runs
    one, other = np.triu_indices(len(x), 1)
    at_once = max(1, MAX_SLOPES_AT_ONCE // len(one))
    parts = np.split(draws, range(at_once, len(draws), at_once))
    slopes = np.concatenate([np.nanmedian(between[chosen[:, one], chosen[:, other]], axis=1) for chosen in parts])
    overheads = np.median(y[draws] - slopes[:, None] * x[draws], axis=1)
    through_origin = overheads < 0
    per_row = np.divide(y, x, out=np.full(len(x), np.nan), where=x > 0)
    slopes[through_origin] = np.nanmedian(per_row[draws[through_origin]], axis=1)
    return np.maximum(overheads, 0.0), slopes
