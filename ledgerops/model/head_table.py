"""When each source partition had which head offset: the table from which a lag in offsets becomes one in seconds."""

from array import array
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence

from ledgerops.model.records import MAX_COUNT, Partition, Progress

MIN_POINTS = 200  # kept of each partition; at most three times as many
MIN_THINNED_PARTITIONS = 1  # whose points are thinned in one call, and one more for each MIN_POINTS partitions
ADVANCE_SECONDS = 3600.0  # over which the advance of a partition's beginning is taken
MIN_ADVANCE_SECONDS = 30.0  # Kafka deletes whole segments: over a shorter time a single one would look like a flood
HeadTable = dict[Partition, tuple["array[float]", "array[float]"]]  # offsets and when, neither falling


def offsets_read_at(progress: Progress) -> float:
    """When a batch asked its sources for their heads."""
    return progress.started + progress.phases.get("latest_offset", 0.0)


def note_heads(table: HeadTable, at: float, offsets: Iterable[tuple[Partition, int]]) -> None:
    """Adds what was seen at `at` to the table of (offset, time). An offset that goes back starts a new series.

    Of a stretch without movement the first and the last instant are kept, as kafka-lag-exporter does: what comes after
    it has not waited since its beginning. Two observers may feed one table; what is older than the newest entry adds
    nothing new. Other threads may be reading: an array never gets shorter, and never holds an offset without its time.
    """
    # the partitions of a topic fill up together: all are done in MIN_POINTS calls
    halves = MIN_THINNED_PARTITIONS + len(table) // MIN_POINTS
    for partition, head in offsets:
        if head > MAX_COUNT:
            continue
        known = table.get(partition)
        if known is None:
            known = table[partition] = (array("d"), array("d"))
        heads, times = known
        if times:
            if at <= times[-1]:
                continue
            newest = heads[-1]
            if head < newest:
                heads, times = table[partition] = (array("d"), array("d"))
            elif head == newest and len(heads) > 1 and heads[-2] == newest:
                times[-1] = at
                continue
        times.append(at)
        heads.append(head)
        if len(heads) >= 2 * MIN_POINTS and halves > 0:
            halves -= 1
            kept = list(_half(heads[:MIN_POINTS], times[:MIN_POINTS]))
            table[partition] = (
                array("d", [heads[i] for i in kept]) + heads[MIN_POINTS:],
                array("d", [times[i] for i in kept]) + times[MIN_POINTS:],
            )


def _half(heads: Sequence[float], times: Sequence[float]) -> Iterator[int]:
    """Every second of the older points, so that the table reaches far back: a consumer may pause for hours.

    Of a stretch without movement the last point stays: without it, the stretch would look like a slow advance. Of the
    longest one both stay: it is what a later one is compared with. So does the newest point: a stretch may begin there.
    """
    still = (index for index in range(1, len(heads)) if heads[index - 1] == heads[index])
    longest = max(still, key=lambda index: times[index] - times[index - 1], default=None)
    keep = True
    for index, head in enumerate(heads):
        if index + 1 in (longest, len(heads)):
            yield index
            continue
        if index + 1 < len(heads) and heads[index + 1] == head:
            continue
        if index and heads[index - 1] == head:
            yield index
            continue
        if keep:
            yield index
        keep = not keep


def time_of_offset(heads: Sequence[float], times: Sequence[float], offset: int) -> float | None:
    """When an offset was last the head, by linear interpolation (as seglo's kafka-lag-exporter does). Below the oldest
    point the answer is the oldest time (a lower bound of the age), None without a point."""
    index = bisect_right(heads, offset)
    if not heads or index == 0:
        return times[0] if heads else None
    low, at = heads[index - 1], times[index - 1]
    if low == offset or index == len(heads):
        return at
    return at + (offset - low) / (heads[index] - low) * (times[index] - at)


def advance(offsets: Sequence[float], times: Sequence[float], now: float) -> float | None:
    """Offsets a second by which a partition's beginning moved lately; None when it did not, or was not watched long."""
    if not offsets:
        return None
    index = max(0, bisect_right(times, now - ADVANCE_SECONDS) - 1)
    span = now - times[index]
    moved = offsets[-1] - offsets[index]
    return moved / span if moved > 0 and span >= MIN_ADVANCE_SECONDS else None
