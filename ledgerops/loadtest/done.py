"""Batches in the terms of a plan: which of its rows each of them finished."""

from __future__ import annotations

from collections.abc import Sequence

from ledgerops.records import Offsets, Progress

TOPICS = frozenset({"transactions", "ad_events"})  # what the rows of a plan are called


class Done:
    """One batch in the plan's terms: it finished the rows from `first` to `last` (excluded)."""

    __slots__ = ("batch", "first", "last")

    def __init__(self, batch: Progress, first: int, last: int) -> None:
        self.batch, self.first, self.last = batch, first, last


def done(batches: Sequence[Progress]) -> list[Done]:
    """The batches in the plan's terms; those of other streams than the plan's are left out."""
    found = []
    for batch in batches:
        ends = [_count(source.end) for source in batch.sources if _count(source.end) is not None]
        starts = [_count(source.start) or 0 for source in batch.sources if _count(source.end) is not None]
        if ends:
            found.append(Done(batch, min(starts), min(end for end in ends if end is not None)))
    return found


def _count(offsets: Offsets) -> int | None:
    """How many first rows the offsets stand for; None of a source that is not the plan's."""
    mine = [offset for (topic, _), offset in offsets.items() if topic in TOPICS]
    return sum(mine) if mine else None
