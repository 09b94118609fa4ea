"""The arithmetic behind every signal: plain numbers in, plain numbers out, None where the data do not say."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import median
from typing import NamedTuple

from ledgerops.model.records import Offsets, Partition, Progress

MIN_FIT_BATCHES = 8  # fewer points let one slow batch tilt the line
MIN_FIT_SPREAD = 0.2  # (p90 - p10) / mean of the rows: below it the slope is noise
MIN_FIT_QUALITY = 0.5  # share of the variance that the line must explain


class Capacity(NamedTuple):
    """What the query can do: batch time = overhead + rows / rate.

    `rate` and `sustainable` are rows a second; `sustainable` is what a trigger interval T leaves of the rate,
    rate x (1 - overhead / T). When only one is known the other is None, and `reason` says why.
    """

    overhead: float | None
    rate: float | None
    sustainable: float | None
    batches: int
    reason: str  # how it was found, or why it could not be


def fit_capacity(rows: Sequence[int], seconds: Sequence[float]) -> tuple[float, float] | str:
    """Least squares of batch seconds over rows: (overhead in s, rate in rows/s), or the reason why there is no answer.

    A negative overhead is clamped to zero and the rate fitted through the origin.
    """
    count = len(rows)
    if count < MIN_FIT_BATCHES:
        return f"{count} batches with rows, {MIN_FIT_BATCHES} are needed"
    ordered = sorted(rows)
    mean_rows = sum(rows) / count
    spread = (ordered[(count * 9) // 10] - ordered[count // 10]) / mean_rows
    if spread < MIN_FIT_SPREAD:
        return f"batches are of nearly one size (spread {spread:.2f}, {MIN_FIT_SPREAD} is needed)"
    mean_seconds = sum(seconds) / count
    variance = covariance = total = 0.0
    for n, s in zip(rows, seconds, strict=True):
        variance += (n - mean_rows) ** 2
        covariance += (n - mean_rows) * (s - mean_seconds)
        total += (s - mean_seconds) ** 2
    if covariance <= 0 or total == 0:
        return "batch time does not grow with the rows"
    slope = covariance / variance
    quality = covariance * slope / total
    if quality < MIN_FIT_QUALITY:
        return f"rows explain only {quality:.0%} of the batch time"
    overhead = mean_seconds - slope * mean_rows
    if overhead < 0:
        overhead, slope = 0.0, mean_seconds / mean_rows
    return overhead, 1 / slope


def skew_ratio(values: Sequence[float]) -> float | None:
    """Largest over median; None for fewer than two values or a median of zero."""
    if len(values) < 2:
        return None
    return ratio(max(values), median(values))


def ratio(largest: float, middle: float) -> float | None:
    """One over the other; None where that is no number."""
    found = largest / middle if middle > 0 else math.inf
    return found if math.isfinite(found) else None


def skew_score(values: Sequence[float]) -> float | None:
    """Mean absolute deviation over the mean, times 100, at most 100 (Flink's FLIP-418); 0 when all are zero."""
    if not values:
        return None
    mean = sum(values) / len(values)
    if mean == 0:
        return 0.0
    return min(100.0, sum(abs(value - mean) for value in values) / len(values) / mean * 100)


def backlog_by_partition(progress: Progress) -> dict[Partition, int]:
    """Offsets that a batch left unread, by (topic, partition), never negative; of two that read one, the slower's."""
    found: dict[Partition, int] = {}
    for source in progress.sources:
        lefts = {
            partition: left if (left := head - source.end[partition]) > 0 else 0
            for partition, head in source.latest.items()
            if partition in source.end
        }
        found = _larger(found, lefts) if found else lefts
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
        found = _larger(found, reads) if found else reads
    return found


def _larger(one: dict[Partition, int], other: dict[Partition, int]) -> dict[Partition, int]:
    """All partitions of both, each with its larger number."""
    return {**one, **{partition: max(count, one.get(partition, 0)) for partition, count in other.items()}}


def rows_per_offset(batches: Sequence[Progress]) -> dict[str, float]:
    """Rows per offset of each source: 1 for most topics, less with compaction or transactions, many for files."""
    rows: dict[str, int] = {}
    offsets: dict[str, int] = {}
    for batch in batches:
        for source in batch.sources:
            if source.read > 0 and source.rows > 0:
                rows[source.name] = rows.get(source.name, 0) + source.rows
                offsets[source.name] = offsets.get(source.name, 0) + source.read
    return {name: rows[name] / offsets[name] for name in rows}


def growth(earlier: Offsets, later: Offsets) -> int:
    """How far the heads moved between two looks, over the partitions in both."""
    return sum([moved for each, head in later.items() if (moved := head - earlier.get(each, head)) > 0])
