"""Which partition and offset the n-th record of the whole stream has, in closed form and both ways.

Without pinning, the records go round the busy partitions: n = offset x partitions + partition. With a share a/b pinned
to one partition, the first n records hold floor(n x a / b) pinned ones, spread as evenly as whole numbers allow; the
others go round the remaining partitions. Idle partitions get nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]

FINEST = 10_000  # a pinned share is held as a fraction of at most this denominator


@dataclass(frozen=True)
class Partitions:
    """Names of the partitions are 0 to count - 1."""

    count: int = 5
    idle: tuple[int, ...] = ()
    pinned: int | None = None
    share: float = 0.0  # of the records, to the pinned partition


class Layout:
    def __init__(self, partitions: Partitions) -> None:
        self.count = partitions.count
        self.pinned = partitions.pinned
        share = Fraction(partitions.share).limit_denominator(FINEST) if partitions.pinned is not None else Fraction(0)
        self._a, self._b = share.numerator, share.denominator
        self._others = [
            p for p in range(partitions.count) if p not in partitions.idle and (p != self.pinned or not self._a)
        ]

    def heads(self, records: int) -> list[int]:
        """How many of the first `records` each partition holds."""
        pinned = records * self._a // self._b
        rest, heads = records - pinned, [0] * self.count
        for i, p in enumerate(self._others):
            heads[p] = (rest - i + len(self._others) - 1) // len(self._others)
        if self._a and self.pinned is not None:
            heads[self.pinned] = pinned
        return heads

    def records(self, partition: int, offsets: Ints) -> Ints:
        """The number in the whole stream of each of the partition's `offsets`."""
        offsets = np.asarray(offsets, np.int64)
        a, b = self._a, self._b
        if a and partition == self.pinned:
            return -(-(offsets + 1) * b // a) - 1
        rest = offsets * len(self._others) + self._others.index(partition)
        return rest * b // (b - a) if a else rest

    def places(self, records: Ints) -> tuple[Ints, Ints]:
        """Partition and offset of each record: the inverse of `records`."""
        records = np.asarray(records, np.int64)
        pinned_before = records * self._a // self._b
        rest = records - pinned_before
        is_pinned = (records + 1) * self._a // self._b > pinned_before
        ring = max(len(self._others), 1)
        others = np.array(self._others or [0], np.int64)
        partition = np.where(is_pinned, self.pinned if self.pinned is not None else 0, others[rest % ring])
        return partition, np.where(is_pinned, pinned_before, rest // ring)
