"""Batches in the terms of a plan: which of its rows each of them finished."""

from collections.abc import Sequence
from typing import NamedTuple

from ledgerops.model.records import Offsets, Progress

TOPICS = frozenset({"transactions", "ad_events"})  # what the rows of a plan are called


class PlanBatch(NamedTuple):
    """One batch in the plan's terms: it finished the rows from `first` to `last` (excluded)."""

    batch: Progress
    first: int
    last: int


def done(batches: Sequence[Progress]) -> list[PlanBatch]:
    """The batches in the plan's terms; those of other streams than the plan's are left out."""
    found = []
    for batch in batches:
        known = [(_count(source.start) or 0, _count(source.end)) for source in batch.sources]
        read = [(start, end) for start, end in known if end is not None]
        if read:
            found.append(PlanBatch(batch, min(start for start, _ in read), min(end for _, end in read)))
    return found


def _count(offsets: Offsets) -> int | None:
    """How many first rows the offsets stand for; None of a source that is not the plan's."""
    mine = [offset for (topic, _), offset in offsets.items() if topic in TOPICS]
    return sum(mine) if mine else None
