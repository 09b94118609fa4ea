"""When rows were due, read and finished: latency from the due time, and its two legs.

The rows of a batch are taken at MAX_POINTS quantiles, each with the weight of the rows it stands for: what is due
between two of them differs by less than a hundredth of the batch.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ledgerops.ledger.plan.phases import Floats
from ledgerops.load.test.plans import Due

MAX_POINTS = 64


@dataclass(frozen=True, slots=True)
class Weighted:
    """Values in ascending order, each with the number of rows that it stands for."""

    values: Floats
    weights: Floats

    @classmethod
    def of(cls, values: Floats, weights: Floats) -> Weighted:
        """Sorts the values and their weights; both are arrays of equal length, in any order."""
        order = np.argsort(values, kind="stable")
        return cls(values[order], weights[order])

    def at(self, share: float) -> float | None:
        """The value that so large a share of the rows does not exceed; None without rows."""
        total = float(self.weights.sum())
        if not total:
            return None
        place = int(np.searchsorted(np.cumsum(self.weights), share * total * (1 - 1e-12)))
        return float(self.values[min(place, len(self.values) - 1)])


@dataclass(frozen=True)
class Rows:
    """Rows, one entry for `weight` of them: when due, when their batch began, when it ended."""

    due: Floats
    start: Floats
    end: Floats
    weight: Floats

    @classmethod
    def none(cls) -> Rows:
        """No rows: four empty arrays."""
        return cls(np.empty(0), np.empty(0), np.empty(0), np.empty(0))

    @classmethod
    def of(cls, due: Due, first: int, last: int, start: float, end: float) -> Rows:
        """The rows from `first` to `last` (excluded) of one batch."""
        if last <= first:
            return cls.none()
        count = min(MAX_POINTS, last - first)
        rows = np.floor(first + (np.arange(count) + 0.5) * (last - first) / count)
        each = (last - first) / count
        return cls(due.instants(rows), np.full(count, start), np.full(count, end), np.full(count, each))

    @classmethod
    def joined(cls, parts: Iterable[Rows]) -> Rows:
        """All parts joined, in their order."""
        columns = zip(*((each.due, each.start, each.end, each.weight) for each in (cls.none(), *parts)), strict=True)
        return cls(*map(np.concatenate, columns))

    def where(self, chosen: NDArray[np.bool_]) -> Rows:
        """The rows whose entry in `chosen` is true; `chosen` has one entry for each row."""
        return Rows(self.due[chosen], self.start[chosen], self.end[chosen], self.weight[chosen])

    @cached_property
    def latency(self) -> Weighted:
        """Seconds from when a row was due to the end of its batch."""
        return Weighted.of(self.end - self.due, self.weight)

    @cached_property
    def waiting(self) -> Weighted:
        """Its part before the batch began; 0 for a row that came while its batch was being planned."""
        return Weighted.of(np.maximum(0.0, self.start - self.due), self.weight)

    @cached_property
    def working(self) -> Weighted:
        """Its part within the batch."""
        return Weighted.of(self.end - np.maximum(self.start, self.due), self.weight)
