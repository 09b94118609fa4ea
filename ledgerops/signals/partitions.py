"""Offsets by source partition: what a batch read, what it left unread, and the lowest of several sources."""

from collections.abc import Iterable

from ledgerops.model.records import Offsets, Partition, Progress


def backlog_by_partition(progress: Progress) -> dict[Partition, int]:
    """Offsets that a batch left unread, by (topic, partition), never negative; of two that read one, the slower's."""
    return _beyond((source.end, source.latest) for source in progress.sources)


def read_by_partition(progress: Progress) -> dict[Partition, int]:
    """Offsets that a batch read, by (topic, partition); of two that read one, the larger number."""
    return _beyond((source.start, source.end) for source in progress.sources)


def _beyond(spans: Iterable[tuple[Offsets, Offsets]]) -> dict[Partition, int]:
    """How far the second offsets of each source are beyond its first, of the partitions of both; never negative."""
    found: dict[Partition, int] = {}
    for first, second in spans:
        beyond = {
            partition: more if (more := offset - first[partition]) > 0 else 0
            for partition, offset in second.items()
            if partition in first
        }
        found = larger_of(found, beyond) if found else beyond
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
