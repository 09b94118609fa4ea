"""Retention risk: the broker will soon delete rows that the query has not read.

Meaning: a topic keeps its records for a limited time, or up to a size. The oldest unread record of a partition is near
    that limit, and the query is not catching up.
Impact: records that are deleted before they are read are lost. The query fails or continues without them, depending on
    `failOnDataLoss`.
Diagnosis: 1. `min by (topic, partition) (ledgerops_retention_headroom_seconds{query="QUERY"})` is the time left. Below
    an hour, raise the retention before anything else.
    2. Compare `max by (topic, partition) (ledgerops_source_lag_seconds{query="QUERY"})` with `retention.ms` of the
    topic (`kafka-configs.sh --describe --entity-type topics --entity-name TOPIC`). If the lag is far below it, the
    limit is `retention.bytes`.
    3. Read the other findings of the query: they say why it does not catch up.
Mitigation: raise `retention.ms` of the topic now, and `retention.bytes` if it is set; this takes effect at once and
    needs no restart. Then repair what keeps the query from reading. Lower the retention again when the backlog is gone.
Evidence:
    ledgerops_retention_headroom_seconds: for the partition, the smaller of: retention_seconds of its topic minus the
        lag below; and (endOffset of the newest batch - earliest) divided by the rate at which earliest advances. Both
        use the newest successful `offsets` record
    headroom_share: ledgerops_retention_headroom_seconds divided by the time that the topic keeps: the smaller of
        retention_seconds and (latest - earliest) divided by the rate at which earliest advances
    headroom_lost_each_second: growth of the lag below since the newest batch that began at least 60 s ago, divided by
        the time since that batch asked for its offsets; 1 if endOffset has not moved since
    ledgerops_source_lag_seconds: now minus the time at which the endOffset of the partition in the newest batch was its
        head, interpolated between the heads (latestOffset of batches, latest of `offsets` records)
"""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ledgerops.diagnosis.rule import Rule
from ledgerops.metrics.pressure import HEADROOM, LAG
from ledgerops.model import head_table
from ledgerops.model.finding import Component, Evidence, Finding, Remedy
from ledgerops.model.records import Partition
from ledgerops.signals.query_view import QueryView
from ledgerops.signals.run import WINDOW_SECONDS

MAX_HEADROOM_SHARE = 0.2  # of what the topic keeps: below it a longer pause of the query loses rows
# of what the topic keeps: above it the time left says more about the topic than about the query
MAX_JUDGED_SHARE = 0.5
# until rows are lost at the present pace: someone on call needs that long to do something about it
MAX_SECONDS_TO_LOSS = 3600.0
MAX_ALIKE_SHARE = 0.1  # of what the topic keeps
MIN_SHRINK_RATIO = 0.05  # seconds of headroom lost each second: less is the noise of batches


class Risk(NamedTuple):
    """A partition whose unread rows are close to deletion."""

    left: float  # seconds until the oldest unread row is deleted
    share: float  # of the time that the topic keeps rows
    pace: float  # seconds of headroom lost each second
    partition: Partition


def check(view: QueryView) -> Iterator[Finding]:
    heads, risks = view.lag.heads, list(_risks(view))
    if heads is None or not risks:
        return
    left, share, pace, worst = _worst(risks)
    topic, partition = worst
    lag = view.lag.unread_since.get(worst)
    evidence = [
        Evidence(HEADROOM.name, left, "seconds", f">= {MAX_SECONDS_TO_LOSS:g}", view.now),
        Evidence("headroom_share", share, "ratio", f">= {MAX_HEADROOM_SHARE:g}", heads.at),
        Evidence("headroom_lost_each_second", pace, "ratio", f"< {MIN_SHRINK_RATIO:g}", view.now),
    ]
    if lag is not None:
        evidence.append(Evidence(LAG.name, max(0.0, view.now - lag), "seconds", "falling", view.now))
    more = f" (and {len(risks) - 1} more)" if len(risks) > 1 else ""
    yield Finding(
        f"the oldest unread row of partition {partition} of {topic}{more} will be deleted in {left:,.0f} s, "
        f"{share:.0%} of the time that the topic keeps rows, and the query is not catching up",
        Component("partition", f"{topic}-{partition}", topic),
        tuple(evidence),
        (
            Remedy(
                f"raise retention.ms of {topic} now, and retention.bytes if it is set",
                "this takes effect at once and needs no restart of the query",
                command="kafka-configs.sh --bootstrap-server SERVERS --alter --entity-type topics "
                f"--entity-name {topic} --add-config retention.ms=MILLISECONDS",
            ),
            Remedy("remove what keeps the query from reading", "a longer retention only gains time"),
        ),
        confidence=min(0.95, 0.7 + 0.25 * (1 - share)),
    )


def _risks(view: QueryView) -> Iterator[Risk]:
    """The partitions whose unread rows are close to deletion, while the query is not catching up."""
    heads = view.lag.heads
    if heads is None or view.last is None:
        return
    for each, left in view.lag.headroom.items():
        configured = heads.retention_seconds.get(each[0])
        if configured is not None and left >= MAX_JUDGED_SHARE * configured:
            continue  # nearly all of it, as nearly always: what the topic really keeps is no more
        if view.lag.consumed[each] < heads.earliest[each]:
            continue  # lost already
        pace, keeps = _pace(view, each), _keeps(view, each)
        if pace is None or keeps is None or keeps <= 0 or pace < MIN_SHRINK_RATIO:
            continue
        share = left / keeps
        if share < MAX_HEADROOM_SHARE or (share < MAX_JUDGED_SHARE and left / pace < MAX_SECONDS_TO_LOSS):
            yield Risk(left, share, pace, each)


def _worst(risks: Sequence[Risk]) -> Risk:
    """The first of the partitions about as near the limit: two that alternate would appear as two findings."""
    least = min(risk.share for risk in risks)
    return min((risk for risk in risks if risk.share <= least + MAX_ALIKE_SHARE), key=lambda risk: risk.partition)


def _keeps(view: QueryView, partition: Partition) -> float | None:
    """Seconds that the topic keeps: its retention, else the length of the log over the rate at which it is deleted."""
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
    if view.now - now_at <= (view.trigger.interval or 0.0) + view.last.duration:
        return 0.0  # the saw-tooth of the trigger
    if min(ends) == view.lag.consumed[partition]:
        return 1.0
    then_at = head_table.time_of_offset(heads, times, min(ends))
    if then_at is None or heads[0] > min(ends):
        return None
    elapsed = view.now - head_table.offsets_read_at(earlier)
    lag, earlier_lag = view.now - now_at, max(0.0, head_table.offsets_read_at(earlier) - then_at)
    return (lag - earlier_lag) / elapsed if elapsed > 0 else None


RULE = Rule(
    slug="retention-risk",
    severity="critical",
    check=check,
    runbook=__doc__,
    linger=5.0,  # headroom does not come and go with single batches
    at_rest=True,
)
