"""Partitions and tables of which rows that the query has not read will soon be deleted."""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ledgerops.diagnosis.limits import MOSTLY, NOISE_SHARE
from ledgerops.model import head_table
from ledgerops.model.records import Partition
from ledgerops.signals.query_view import QueryView
from ledgerops.signals.run import WINDOW_SECONDS

MAX_HEADROOM_SHARE = 0.2  # of what the topic keeps: below it a longer pause of the query loses rows
# until rows are lost at the present pace: someone on call needs that long to do something about it
MAX_SECONDS_TO_LOSS = 3600.0
MIN_SHRINK_RATIO = 0.05  # seconds of headroom lost each second: less is the noise of batches


class Risk(NamedTuple):
    """A partition, or a table, whose unread rows are close to deletion."""

    left: float  # seconds until the oldest unread row is deleted
    share: float  # of the time that the topic or table keeps rows
    pace: float  # seconds of headroom lost each second
    partition: Partition


def risks(view: QueryView) -> Iterator[Risk]:
    """The partitions and tables whose unread rows are close to deletion, while the query is not catching up."""
    for risk in (*_of_topics(view), *_of_tables(view)):
        soon = risk.share < MOSTLY and risk.left / risk.pace < MAX_SECONDS_TO_LOSS
        if risk.share < MAX_HEADROOM_SHARE or soon:
            yield risk


def _of_tables(view: QueryView) -> Iterator[Risk]:
    """A table keeps the commits from the oldest that it still has to now."""
    earlier = next((each for each in reversed(view.tables.samples) if each.at <= view.now - WINDOW_SECONDS), None)
    for place, left in view.tables.headroom.items():
        newest, then = view.tables.read[place[0]], earlier.sources.get(place[0]) if earlier is not None else None
        if earlier is None or then is None or newest.since is None or newest.oldest_at is None:
            continue
        lag = earlier.at - then.since if then.since is not None else 0.0 if then.versions == 0 else None
        if lag is None:
            continue
        pace = (view.now - newest.since - max(0.0, lag)) / (view.now - earlier.at)
        if pace >= MIN_SHRINK_RATIO and view.now > newest.oldest_at:
            yield Risk(left, left / (view.now - newest.oldest_at), pace, place)


def _of_topics(view: QueryView) -> Iterator[Risk]:
    heads = view.lag.heads
    if heads is None or view.last is None:
        return
    retention = heads.retention_seconds
    for each, left in view.lag.headroom.items():
        configured = retention.get(each[0])
        if configured is not None and left >= MOSTLY * configured:
            continue  # nearly all of it, as nearly always: what the topic really keeps is no more
        if view.lag.consumed[each] < heads.earliest[each]:
            continue  # lost already
        pace, keeps = _pace(view, each), _keeps(view, each)
        if pace is None or keeps is None or keeps <= 0 or pace < MIN_SHRINK_RATIO:
            continue
        yield Risk(left, left / keeps, pace, each)


def worst(found: Sequence[Risk]) -> Risk:
    """The first of the partitions about as near the limit: two that alternate would appear as two findings."""
    least = min(risk.share for risk in found)
    return min((risk for risk in found if risk.share <= least + NOISE_SHARE), key=lambda risk: risk.partition)


def _keeps(view: QueryView, partition: Partition) -> float | None:
    """Seconds that the topic keeps: its retention, or less where the log is deleted sooner, by length and rate."""
    assert view.lag.heads is not None
    configured = view.lag.heads.retention_seconds.get(partition[0])
    offsets, times = view.history.earliest_times.get(partition, ((), ()))
    rate = head_table.advance(offsets, times, view.now)
    length = view.lag.heads.latest.get(partition, 0) - view.lag.heads.earliest[partition]
    known = [each for each in (configured, length / rate if rate else None) if each is not None]
    return min(known, default=None)


def _pace(view: QueryView, partition: Partition) -> float | None:
    """Seconds of headroom that each second takes: 1 while the query makes no progress, below 0 while it catches up.

    Compared with the newest batch that is at least a minute old; None before there is one.
    """
    index = bisect_right(view.batches, view.now - WINDOW_SECONDS, key=lambda batch: batch.started)
    if index == 0:
        return None
    earlier = view.batches[index - 1]
    ends = [source.end[partition] for source in earlier.sources if partition in source.end]
    if not ends or partition not in view.history.head_times:
        return None
    heads, times = view.history.head_times[partition]
    now_at = head_table.time_of_offset(heads, times, view.lag.consumed[partition])
    if now_at is None or view.last is None:
        return None
    if view.now - now_at <= view.interval + view.last.duration:
        return 0.0  # the saw-tooth of the trigger
    if min(ends) == view.lag.consumed[partition]:
        return 1.0
    then_at = head_table.time_of_offset(heads, times, min(ends))
    if then_at is None or heads[0] > min(ends):
        return None
    elapsed = view.now - head_table.offsets_read_at(earlier)
    lag, earlier_lag = view.now - now_at, max(0.0, head_table.offsets_read_at(earlier) - then_at)
    return (lag - earlier_lag) / elapsed if elapsed > 0 else None
