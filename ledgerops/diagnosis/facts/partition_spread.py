"""How far apart in time the partitions of a topic are read."""

from __future__ import annotations

from typing import NamedTuple

from ledgerops.model.head_table import offsets_read_at
from ledgerops.model.records import Partition
from ledgerops.signals.memo import once
from ledgerops.signals.query_view import QueryView


class Spread(NamedTuple):
    """How far apart in time the partitions of a topic are read."""

    slowest: Partition
    seconds: float  # how far it is behind the one that is read furthest, in time of arrival
    partitions: int


@once
def partition_spread(view: QueryView) -> Spread | None:
    """The topic whose partitions are furthest apart, by when the consumed offset of each was its head."""
    if view.last is None:
        return None
    now = offsets_read_at(view.last)
    by_topic: dict[str, dict[Partition, float]] = {}
    for partition, until in view.lag.consumed_until.items():
        by_topic.setdefault(partition[0], {})[partition] = min(until, now)  # infinity: nothing was left then
    found = []
    for times in by_topic.values():
        slowest = min(times, key=times.__getitem__)
        found.append(Spread(slowest, max(times.values()) - times[slowest], len(times)))
    return max(found, key=lambda each: each.seconds, default=None)
