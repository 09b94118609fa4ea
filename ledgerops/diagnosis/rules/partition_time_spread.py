"""Partition time spread: one partition is read ahead, so the rows of another count as late.

Meaning: a query has one watermark, which follows the newest event time of all partitions. One partition has been read
    up to now, another only up to some time ago. The rows of the second are older than the watermark when they are read.
Impact: the rows of the slow partition are dropped without an error. Their producer is correct.
Diagnosis: 1. `max by (topic, partition) (ledgerops_source_lag_seconds{app="APP",query="QUERY"})` shows how far each
    partition is behind. If the difference is larger than the allowed lateness, it explains the dropped rows; if not,
    see `late-data`.
    2. `increase(ledgerops_rows_dropped_by_watermark_total{app="APP",query="QUERY"}[5m])` shows whether rows are still
    dropped. If not, the partitions are close again.
    3. Check `sum by (topic, partition) (ledgerops_source_backlog_offsets{app="APP",query="QUERY"})`. If only one
    partition has a backlog, see `source-partition-skew`; if all have one, the query is reading an old backlog.
Mitigation: set `maxOffsetsPerTrigger` at the next start: it divides a batch among the partitions by their backlog.
    Remove the cause of the lag of the slow partition. Until then allow as much lateness as the partitions are apart;
    state grows in proportion, and the change applies from the next start of the query.
Evidence:
    partitions_apart_seconds: latest - earliest of the times at which the endOffset of each partition of the topic was
        its head, at most when the newest batch asked for its offsets
    rows_dropped_last_minute: sum of numRowsDroppedByWatermark of all operators over the batches that ended in the last
        60 s, or in three trigger intervals where these are longer
    allowed_lateness_seconds: the largest delay of `withWatermark` in the plan
"""

from collections.abc import Iterator
from math import ceil

from ledgerops.common.format import duration
from ledgerops.diagnosis.facts.dropped import MIN_ROWS, dropped
from ledgerops.diagnosis.rule import Rule
from ledgerops.metrics.first_steps import GENERAL, first_step
from ledgerops.model.finding import DELAY_SECONDS, Component, Evidence, Finding, Remedy, Setting
from ledgerops.model.head_table import offsets_read_at
from ledgerops.model.records import Partition, Progress
from ledgerops.signals.query_view import QueryView

MIN_APART_SECONDS = 10.0  # partitions are always a batch or two apart


def check(view: QueryView) -> Iterator[Finding]:
    found = dropped(view)
    spread = _spread(view, view.last) if found is not None and view.last is not None else None
    if found is None or spread is None:
        return
    apart, (topic, partition), count = spread
    delay = view.plan.lateness
    limit = max(MIN_APART_SECONDS, delay or 0.0, 2 * view.interval)
    if apart < limit:
        return
    enough = ceil(apart + (delay or 0.0))
    allowed = f" (allowed lateness {delay:g} s)" if delay is not None else ""
    evidence = [
        Evidence("partitions_apart_seconds", apart, "seconds", f"< {limit:g}", found.at),
        Evidence("rows_dropped_last_minute", float(found.total), "rows", f"< {MIN_ROWS}", found.at),
    ]
    if delay is not None:
        evidence.append(Evidence("allowed_lateness_seconds", delay, "seconds", f"> {apart:.0f}", found.at))
    yield Finding(
        f"partition {partition} of {topic} is read {duration(apart)} behind the most advanced of "
        f"{count}{allowed}, and {found.total:,} rows were dropped as late {found.lately}",
        Component("partition", f"{topic}-{partition}", topic),
        tuple(evidence),
        (
            first_step("partition-time-spread", GENERAL, "the watermark follows the most advanced partition"),
            Remedy(
                f"allow more lateness with withWatermark, at least {enough} s",
                "the rows of the slow partition are then no longer late; state grows in proportion",
                safe=False,
                settings=(Setting(DELAY_SECONDS, enough),),
            ),
        ),
        confidence=0.8 if delay is not None else 0.6,
        began=found.since,
        share=found.known_share,
    )


def _spread(view: QueryView, last: Progress) -> tuple[float, Partition, int] | None:
    """How many seconds apart the partitions of a topic are read, by when the consumed offset of each was its head, with
    the slowest and their number; of the topic where these are most."""
    now = offsets_read_at(last)
    by_topic: dict[str, dict[Partition, float]] = {}
    for partition, until in view.lag.consumed_until.items():
        by_topic.setdefault(partition[0], {})[partition] = min(until, now)  # infinity: nothing was left then
    slowest = ((times, min(times, key=times.__getitem__)) for times in by_topic.values())
    found = [(max(times.values()) - times[least], least, len(times)) for times, least in slowest]
    return max(found, key=lambda each: each[0], default=None)


RULE = Rule("partition-time-spread", "warning", check, __doc__, ("late-data", "rows-dropped"), linger=10.0)
