"""The shapes of load: how many records are due after so many seconds, and when the n-th is.

Each phase gives `amount(seconds)`, the integral of its rate from its own beginning, and its inverse `when(amount)`,
the earliest instant at which so many are due. Both take and give arrays of float64, and neither accumulates anything:
the schedule of the billionth record is as exact as that of the first.
"""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_TABLE_POINTS = 4096  # of a period of a sine, from which the search for an instant sets out
_HALVINGS = 12  # then halves the interval, which leaves four microseconds of a minute to a straight line


@dataclass(frozen=True)
class Constant:
    """`rate` records a second."""

    rate: float
    duration: float

    def amount(self, seconds: Floats) -> Floats:
        """Records due by each instant, counted from the start of the phase. Arrays of equal shape."""
        return self.rate * seconds

    def when(self, amount: Floats) -> Floats:
        """Seconds from the start of the phase at which each amount is due; 0 if the rate is 0."""
        return amount / self.rate if self.rate else np.zeros_like(amount)


@dataclass(frozen=True)
class Ramp:
    """The rate goes in a straight line from `low` to `high`; `high` may be the lower one."""

    low: float
    high: float
    duration: float

    def amount(self, seconds: Floats) -> Floats:
        """Records due by each instant, counted from the start of the phase. Arrays of equal shape."""
        return seconds * (self.low + (self.high - self.low) / self.duration * seconds / 2)

    def when(self, amount: Floats) -> Floats:
        """Seconds from the start of the phase at which each amount is due: the inverse of `amount`."""
        growth = (self.high - self.low) / self.duration
        # the root in the form that does not subtract near-equal numbers
        root = self.low + np.sqrt(np.maximum(self.low**2 + 2 * growth * amount, 0.0))
        return np.divide(2 * amount, root, out=np.zeros_like(amount), where=root > 0)


@dataclass(frozen=True)
class Sine:
    """The rate swings between `low` and `high`, one full swing in `period` seconds; it begins at `low`."""

    low: float
    high: float
    period: float
    duration: float

    def amount(self, seconds: Floats) -> Floats:
        """Records due by each instant, counted from the start of the phase. Arrays of equal shape."""
        middle, swing = (self.high + self.low) / 2, (self.high - self.low) / 2
        turn = 2 * math.pi / self.period
        return middle * seconds - swing / turn * np.sin(turn * seconds)

    def when(self, amount: Floats) -> Floats:
        """Seconds from the start of the phase at which each amount is due; 0 if both rates are 0."""
        each = (self.high + self.low) / 2 * self.period
        if not each:
            return np.zeros_like(amount)
        periods = np.maximum(np.ceil(amount / each) - 1, 0.0)
        rest = amount - periods * each
        slot = np.clip(np.searchsorted(self._table, rest), 1, _TABLE_POINTS)
        below: Floats = (slot - 1).astype(np.float64) * (self.period / _TABLE_POINTS)
        width = self.period / _TABLE_POINTS
        for _ in range(_HALVINGS):
            width /= 2
            below = np.where(self.amount(below + width) < rest, below + width, below)
        before = self.amount(below)
        step = self.amount(below + width) - before
        part = np.divide(rest - before, step, out=np.ones_like(rest), where=step > 0)
        instant: Floats = periods * self.period + below + width * np.clip(part, 0.0, 1.0)
        return instant

    @cached_property
    def _table(self) -> Floats:
        return self.amount(np.arange(_TABLE_POINTS + 1, dtype=np.float64) * (self.period / _TABLE_POINTS))


@dataclass(frozen=True)
class Burst:
    """`base` records a second, and `peak` in the last `length` seconds of every `every` seconds."""

    base: float
    peak: float
    every: float
    length: float
    duration: float

    def amount(self, seconds: Floats) -> Floats:
        """Records due by each instant, counted from the start of the phase. Arrays of equal shape."""
        periods = np.floor(seconds / self.every)
        rest = seconds - periods * self.every
        calm = self.every - self.length
        return periods * self._each + self.base * np.minimum(rest, calm) + self.peak * np.maximum(rest - calm, 0.0)

    def when(self, amount: Floats) -> Floats:
        """Earliest second of the phase at which each amount is due; 0 if both rates are 0."""
        if not self._each:
            return np.zeros_like(amount)
        periods = np.maximum(np.ceil(amount / self._each) - 1, 0.0)
        rest = amount - periods * self._each
        calm = self.every - self.length
        before = Constant(self.base, calm).when(np.minimum(rest, self.base * calm))
        after = calm + Constant(self.peak, self.length).when(rest - self.base * calm)
        instant: Floats = periods * self.every + np.where(rest > self.base * calm, after, before)
        return instant

    @property
    def _each(self) -> float:
        return self.base * (self.every - self.length) + self.peak * self.length


Phase = Constant | Ramp | Sine | Burst
