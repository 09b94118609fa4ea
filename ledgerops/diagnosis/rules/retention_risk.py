"""Retention risk: rows that the query has not read will soon be deleted by the broker, or with the history of a table.

Meaning: a topic keeps its records for a limited time, or up to a size. The oldest unread record of a partition is near
    that limit, and the query is not catching up. Of a table the history is kept for a limited time: the entries of a
    Delta log, the snapshots of Iceberg.
Impact: records that are deleted before they are read are lost. The query fails or continues without them, depending on
    `failOnDataLoss`. A query whose version or snapshot is gone fails and cannot start with its checkpoint.
Diagnosis: 1. `min by (topic, partition) (ledgerops_retention_headroom_seconds{app="APP",query="QUERY"})` is the time
    left. Below an hour, raise the retention before anything else.
    2. Compare `max by (topic, partition) (ledgerops_source_lag_seconds{app="APP",query="QUERY"})` with `retention.ms`
    of the topic (`kafka-configs.sh --bootstrap-server SERVERS --describe --entity-type topics --entity-name TOPIC`). If
    the lag is far below it, the limit is `retention.bytes`.
    3. Read the other findings of the query: they say why it does not catch up.
    4. For a table: the topic is its name. Compare the lag with `delta.logRetentionDuration`, or with what
    `expire_snapshots` keeps.
Mitigation: for a table raise `delta.logRetentionDuration`, or stop `expire_snapshots`, until the query has caught up.
    For a topic raise `retention.ms` now, and `retention.bytes` if it is set; this takes effect at once and needs no
    restart (`kafka-configs.sh --bootstrap-server SERVERS --alter --entity-type topics --entity-name TOPIC
    --add-config retention.ms=MILLISECONDS`). Then repair what keeps the query from reading. Lower the retention again
    when the backlog is gone.
Evidence:
    ledgerops_retention_headroom_seconds: the smaller of retention_seconds of the topic - the lag below, and (endOffset
        - earliest) / the rate at which earliest advances. Of a table: since - oldest_at of the newest record `tables`
    headroom_share: that time / what the topic keeps: the smaller of retention_seconds and (latest - earliest) / that
        rate. A table keeps the time from oldest_at to now
    headroom_lost_each_second: growth of the lag below since the newest batch, or record `tables`, that is 60 s old,
        divided by the time since then; 1 if endOffset has not moved
    ledgerops_source_lag_seconds: now - when the endOffset of the partition was its head, interpolated between the heads
        that were seen. Of a table: now - since
"""

from collections.abc import Iterator
from shlex import quote

from ledgerops.common.format import duration
from ledgerops.diagnosis.facts.retention import MAX_HEADROOM_SHARE, MAX_SECONDS_TO_LOSS, MIN_SHRINK_RATIO, risks, worst
from ledgerops.diagnosis.rule import Rule
from ledgerops.metrics.first_steps import GENERAL, first_step
from ledgerops.metrics.pressure import HEADROOM, LAG
from ledgerops.model.finding import Component, Evidence, Finding, Remedy
from ledgerops.signals.query_view import QueryView

ALTER = (
    "kafka-configs.sh --bootstrap-server SERVERS --alter --entity-type topics "
    "--entity-name {} --add-config retention.ms=MILLISECONDS"
)


def check(view: QueryView) -> Iterator[Finding]:
    found = list(risks(view))
    if not found:
        return
    left, share, pace, place = worst(found)
    topic, partition = place
    table = view.tables.read.get(topic) if place in view.tables.headroom else None
    lag = view.lag.unread_since.get(place) if table is None else table.since
    at = view.now if table is not None or view.lag.heads is None else view.lag.heads.at
    evidence = [
        Evidence(HEADROOM.name, left, "seconds", f">= {MAX_SECONDS_TO_LOSS:g}", view.now),
        Evidence("headroom_share", share, "ratio", f">= {MAX_HEADROOM_SHARE:g}", at),
        Evidence("headroom_lost_each_second", pace, "ratio", f"< {MIN_SHRINK_RATIO:g}", view.now),
    ]
    if lag is not None:
        evidence.append(Evidence(LAG.name, max(0.0, view.now - lag), "seconds", "falling", view.now))
    more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
    what, keeper = (f"commit of {topic}", "table") if table else (f"row of partition {partition} of {topic}", "topic")
    if table:
        why = "without the version or snapshot that it reads next the query cannot go on with its checkpoint"
        keep = first_step("retention-risk", "table", why, table=topic)
    else:
        why, command = "this takes effect at once and needs no restart of the query", ALTER.format(quote(topic))
        keep = first_step("retention-risk", GENERAL, why, topic=topic, command=command)
    yield Finding(
        f"the oldest unread {what}{more} will be deleted in {duration(left)}, "
        f"{share:.0%} of the time that the {keeper} keeps rows, and the query is not catching up",
        Component("source", topic) if table else Component("partition", f"{topic}-{partition}", topic),
        tuple(evidence),
        (keep, Remedy("remove what keeps the query from reading", "a longer retention only gains time")),
        confidence=0.9 if share < MAX_HEADROOM_SHARE else 0.8,
    )


# headroom does not come and go with single batches, so a finding need not linger for long
RULE = Rule("retention-risk", "critical", check, __doc__, linger=5.0, at_rest=True, urgent=True)
