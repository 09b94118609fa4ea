"""Offsets by source partition: what a batch read, what it left unread, and the lowest of several sources."""

from __future__ import annotations

from collections.abc import Iterable

from ledgerops.model.records import Offsets, Partition, Progress


def backlog_by_partition(progress: Progress) -> dict[Partition, int]:
    """Offsets that a batch left unread, by (topic, partition), never negative; of two that read one, the slower's."""
    found: dict[Partition, int] = {}
    for source in progress.sources:
        lefts = {
            partition: left if (left := head - source.end[partition]) > 0 else 0
            for partition, head in source.latest.items()
            if partition in source.end
        }
        found = larger_of(found, lefts) if found else lefts
    return found


def read_by_partition(progress: Progress) -> dict[Partition, int]:
    """Offsets that a batch read, by (topic, partition); of two that read one, the larger number."""
    found: dict[Partition, int] = {}
    for source in progress.sources:
        reads = {
            partition: read if (read := end - source.start[partition]) > 0 else 0
            for partition, end in source.end.items()
            if partition in source.start
        }
        found = larger_of(found, reads) if found else reads
    return found


def lowest_offsets(sources: Iterable[Offsets]) -> dict[Partition, int]:
    """All partitions of some sources; of several sources that read one, the offset of the slowest."""
    found: dict[Partition, int] = {}
    for offsets in sources:
        shared = {partition: min(found[partition], offsets[partition]) for partition in found.keys() & offsets.keys()}
        found = {**found, **offsets, **shared}
    return found


def larger_of(one: dict[Partition, int], other: dict[Partition, int]) -> dict[Partition, int]:
    """All partitions of both, each with its larger number."""
    return {**one, **{partition: max(count, one.get(partition, 0)) for partition, count in other.items()}}
