"""Which of a section's values holds for which records, when a plan's `changes` replace the section for a while.

A change holds from the first record due at its beginning to the last one due before its end. Borders are numbers of
records, so what a record is like depends on its number alone.
"""

from collections.abc import Iterator, Sequence
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from ledgerops.ledger.plan.changes import Change
from ledgerops.ledger.plan.partitioning import Ints
from ledgerops.ledger.plan.plan import LoadPlan

Where = NDArray[np.bool_] | slice
T = TypeVar("T")
_NEVER = 2**62  # the number of no record


class Spans(Generic[T]):
    """Span i holds `values[i]` from record `starts[i]` on, and began `since[i]` seconds after the plan did."""

    def __init__(
        self, plan: LoadPlan, own: T, given: Sequence[tuple[Change, T | None]], again: T | None = None
    ) -> None:
        """`own` is the plan's own value, `given` what its changes have, and `again` what holds of it after a change."""
        again = own if again is None else again
        windows = [(change.begin, change.end, value) for change, value in given if value is not None]
        self.values: list[T] = [own]
        self.since = [0.0]
        starts = [0]
        for begin, end, value in sorted(windows, key=lambda window: window[0]):
            self.values += [value, again]
            # the plan's own clocks go on during a change
            self.since += [begin, 0.0]
            starts += [plan.schedule.first_at(begin), plan.schedule.first_at(end) if end < np.inf else _NEVER]
        self.starts: Ints = np.array(starts, np.int64)

    def at(self, records: Ints) -> Iterator[tuple[int, Where]]:
        """The spans that hold for some of the records, each with the places of these."""
        if len(self.values) == 1:
            yield 0, slice(None)
            return
        span = np.searchsorted(self.starts, records, side="right") - 1
        for i in map(int, np.unique(span)):
            yield i, span == i
