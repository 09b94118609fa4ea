"""Disorder of a plan's records: which are copies, of what, and by how much a transaction's date is off.

Every answer is a function of the record's number and of the sections that hold for it (`plan_windows`).
"""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ledgerops.ledger.plan.partitioning import Ints
from ledgerops.ledger.plan.plan import LoadPlan
from ledgerops.ledger.plan.plan_windows import Spans
from ledgerops.ledger.plan.sections import Late
from ledgerops.ledger.plan.seeded_hash import hashes, high_half, low_half, unit

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

_LATE, _DUPLICATE, _CONFLICT, _FUTURE = 2, 3, 7, 8  # purposes of hashes


class Disorder:
    """The disorder of one plan. `conflict_bits` is what a conflicting copy's amount is drawn by."""

    def __init__(self, plan: LoadPlan) -> None:
        self._seed, self._schedule, changes = plan.seed, plan.schedule, plan.changes
        self._late = Spans(plan, plan.late, [(each, each.late) for each in changes])
        # those that are counted come once, and not again after each change
        again = replace(plan.future, count=0)
        self._future = Spans(plan, plan.future, [(each, each.future) for each in changes], again)
        self._copies = Spans(plan, plan.duplicates, [(each, each.duplicates) for each in changes])

    def carried(self, records: Ints) -> Ints:
        """The number of the transaction that each record carries: its own, or that of the record it repeats."""
        if not any(each.share for each in self._copies.values):
            return records
        carried, open_ = records.copy(), np.arange(len(records))
        while len(open_):
            record = carried[open_]
            bits = hashes(self._seed, _DUPLICATE, record)
            share, within = np.zeros(len(record)), np.zeros(len(record))
            for i, mine in self._copies.at(record):
                share[mine], within[mine] = self._copies.values[i].share, self._copies.values[i].within
            repeats = (low_half(bits) < share) & (record > 0) & ~self._alone(record)
            open_, bits, record, within = open_[repeats], bits[repeats], record[repeats], within[repeats]
            due = self._schedule.due_time(record)
            earlier = self._schedule.cumulative(due - high_half(bits) * np.minimum(due, within)).astype(np.int64)
            earlier = np.clip(earlier, 0, record - 1)
            taken = self._alone(earlier)
            carried[open_] = np.where(taken, record, earlier)
            open_ = open_[~taken]
        return carried

    def conflicting(self, records: Ints, carried: Ints) -> Bools:
        """Which of the records carry their transaction with another amount."""
        share = np.zeros(len(records))
        for i, mine in self._copies.at(records):
            share[mine] = self._copies.values[i].conflicting
        if not share.any():
            return np.zeros(len(records), np.bool_)
        found: Bools = (carried != records) & (unit(self.conflict_bits(records)) < share)
        return found

    def conflict_bits(self, records: Ints) -> NDArray[np.uint64]:
        """64 random bits for each record, always the same for one seed and record number."""
        return hashes(self._seed, _CONFLICT, records)

    def delays(self, numbers: Ints) -> Floats:
        """By how many seconds each transaction happened before its record was due; 0 for those in time.

        Below 0 where it is dated so far into the future.
        """
        out = np.zeros(len(numbers))
        for i, mine in self._late.at(numbers):
            out[mine] = self._lateness(self._late.values[i], numbers[mine])
        for i, mine in self._future.at(numbers):
            future = self._future.values[i]
            if future.share or future.count:
                ahead = unit(hashes(self._seed, _FUTURE, numbers[mine])) < future.share
                ahead |= numbers[mine] < self._future.starts[i] + future.count
                out[mine] = np.where(ahead, -future.ahead, out[mine])
        return out

    def _lateness(self, late: Late, numbers: Ints) -> Floats:
        out = np.zeros(len(numbers))
        if not late.share:
            return out
        bits = hashes(self._seed, _LATE, numbers)
        mine = low_half(bits) < late.share
        position = high_half(bits[mine])
        if late.delay == "exponential":
            out[mine] = -late.high * np.log1p(-position)
        else:
            out[mine] = late.low + (late.high - late.low) * position
        return out

    def _alone(self, numbers: Ints) -> Bools:
        """Which are dated ahead because they are the first ones: they are no copies, and none is copied."""
        found = np.zeros(len(numbers), np.bool_)
        if any(each.count for each in self._future.values):
            for i, mine in self._future.at(numbers):
                found[mine] = numbers[mine] < self._future.starts[i] + self._future.values[i].count
        return found
