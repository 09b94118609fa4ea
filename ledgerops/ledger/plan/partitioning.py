"""Which partition and offset the n-th record of the whole stream has, in closed form and both ways.

Without pinning, the records go round the busy partitions: n = offset x partitions + partition. With a share a/b pinned
to one partition, the first n records hold floor(n x a / b) pinned ones, spread as evenly as whole numbers allow; the
others go round the remaining partitions. Idle partitions get nothing.

Where a plan changes its partitions, each layout counts from the first record of its span on (`Places`).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]

MAX_DENOMINATOR = 10_000  # a pinned share is held as a fraction of at most this denominator


@dataclass(frozen=True)
class Partitions:
    """Names of the partitions are 0 to count - 1."""

    count: int = 5
    idle: tuple[int, ...] = ()
    pinned: int | None = None
    share: float = 0.0  # of the records, to the pinned partition; 0 without one


class Layout:
    """The places of records under one section `partitions` of a plan."""

    def __init__(self, partitions: Partitions) -> None:
        self.partitions = partitions
        self.count = partitions.count
        self.pinned = partitions.pinned
        share = Fraction(partitions.share).limit_denominator(MAX_DENOMINATOR)
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


class Places:
    """Layouts one after the other: `layouts[i]` from record `starts[i]` on, the first from record 0."""

    def __init__(self, layouts: Sequence[Partitions], starts: Ints) -> None:
        self.count = max(each.count for each in layouts)
        # what begins where the next begins, too, holds for no record
        kept = [i for i in range(len(layouts)) if i == len(layouts) - 1 or starts[i] < starts[i + 1]]
        self._layouts = [Layout(layouts[i]) for i in kept]
        self._starts: Ints = np.asarray(starts, np.int64)[kept]
        self._heads = np.zeros((len(kept), self.count), np.int64)  # of each partition, at the starts
        for i in range(1, len(kept)):
            within = self._layouts[i - 1].heads(int(self._starts[i] - self._starts[i - 1]))
            self._heads[i] = self._heads[i - 1]
            self._heads[i, : len(within)] += within

    def known(self, records: int) -> int:
        """How many partitions there are after the first `records`: as many as had a chance to get one."""
        return max(each.count for i, each in enumerate(self._layouts) if i == 0 or self._starts[i] < records)

    def heads(self, records: int) -> list[int]:
        """How many of the first `records` each partition holds."""
        i = self._span(records)
        heads: list[int] = self._heads[i].tolist()
        for p, head in enumerate(self._layouts[i].heads(records - int(self._starts[i]))):
            heads[p] += head
        return heads

    def records(self, partition: int, offsets: Ints) -> Ints:
        """The number in the whole stream of each of the partition's `offsets`."""
        offsets = np.asarray(offsets, np.int64)
        before = self._heads[:, partition]
        span = np.searchsorted(before, offsets, side="right") - 1
        found = np.empty_like(offsets)
        for i in map(int, np.unique(span)):
            mine = span == i
            found[mine] = self._starts[i] + self._layouts[i].records(partition, offsets[mine] - before[i])
        return found

    def places(self, records: Ints) -> tuple[Ints, Ints]:
        """Partition and offset of each record: the inverse of `records`."""
        records = np.asarray(records, np.int64)
        span = np.searchsorted(self._starts, records, side="right") - 1
        partitions, offsets = np.empty_like(records), np.empty_like(records)
        for i in map(int, np.unique(span)):
            mine = span == i
            partition, offset = self._layouts[i].places(records[mine] - self._starts[i])
            partitions[mine], offsets[mine] = partition, offset + self._heads[i, partition]
        return partitions, offsets

    def _span(self, records: int) -> int:
        return int(np.searchsorted(self._starts, records, side="right")) - 1
