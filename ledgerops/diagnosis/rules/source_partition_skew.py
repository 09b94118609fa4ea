"""Source partition skew: one partition of the source gets most of the rows.

Meaning: a source partition is read by one task. The task of the heavy partition works on while the others are done.
Impact: the batch takes as long as its largest partition; more cores do not help. The backlog of that one partition
    grows while the others are up to date.
Diagnosis: `topk(3, sum by (topic, partition) (ledgerops_source_backlog_offsets{query="QUERY"}))` and
    `ledgerops_skew_ratio{query="QUERY", kind="source_partition"}`. Ask how the producer chooses the partition: by a
    key that few values share, or always the same by mistake.
Mitigation: repair the producer's choice of partition, then wait until the partition is worked off. Until then let the
    query repartition after reading, if the work after reading is what takes long. More partitions help only new rows,
    and only if their keys differ.
Evidence:
    partition_rows_last_minute: growth of sources[].latestOffset of that partition from the first batch of the last
        minute to the newest, where the source tells it, else the sum of endOffset - startOffset over these batches;
        without the batches of the run's first 10 s
    partition_share: that over the same of all partitions of the topic
    slower_than_even: partition_share x min(partitions of the topic, cores of active executors)
    ledgerops_source_backlog_offsets: latestOffset - endOffset of that partition in the newest batch
"""

from collections.abc import Iterator, Sequence

from ledgerops.diagnosis import spread, work
from ledgerops.diagnosis.model import Component, Evidence, Finding, Remedy, Rule
from ledgerops.records import Partition, Progress
from ledgerops.signals import read_by_partition
from ledgerops.view import WINDOW, View

SHARE = 0.5  # of the topic's rows in one partition
SLOWER = 1.5  # reading takes so much longer than with an even split on the cores that there are
ROWS = 1000  # in the latest minute; a trickle is uneven by chance
BATCHES = 3
SECONDS = 5.0  # over which these must spread: a single flush of a producer is no skew


def check(view: View) -> Iterator[Finding]:
    fresh = [batch for batch in _latest_minute(view) if batch.rows > 0]
    if len(fresh) < BATCHES or fresh[-1].ended - fresh[0].started < SECONDS:
        return
    for topic, arrived in _by_topic(view).items():
        total = sum(arrived.values())
        if total < ROWS or len(arrived) < 2:
            continue
        heaviest = max(arrived, key=lambda partition: arrived[partition])
        share = arrived[heaviest] / total
        factor = work.slots(view, len(arrived)) * share
        if share < SHARE or factor < SLOWER:
            continue
        at = fresh[-1].ended
        left = view.backlog_by_partition.get(heaviest)
        uneven = spread.uneven_stage(view, shuffle=False)
        evidence = [
            Evidence(
                "partition_rows_last_minute", float(arrived[heaviest]), "offsets", f"~ {total / len(arrived):,.0f}", at
            ),
            Evidence("partition_share", share, "ratio", f"< {SHARE:g}", at),
            Evidence("slower_than_even", factor, "ratio", f"< {SLOWER:g}", at),
        ]
        if left is not None:
            evidence.append(Evidence("ledgerops_source_backlog_offsets", float(left), "offsets", "0", at))
        yield Finding(
            f"partition {heaviest[1]} of {topic} got {share:.0%} of the {total:,} rows of the last minute, "
            f"{1 / len(arrived):.0%} would be even",
            Component("partition", f"{topic}-{heaviest[1]}", topic),
            tuple(evidence),
            (
                Remedy(
                    "repair how the producer chooses the partition", "one task reads a partition, whatever the cores"
                ),
                Remedy(
                    "repartition after reading",
                    "spreads the work behind the source, at the cost of a shuffle",
                    safe=False,
                ),
            ),
            confidence=min(0.95, 0.5 + 0.5 * share),
            began=fresh[0].started,
            share=None if uneven is None else min(1.0, uneven.cost),
        )


def _latest_minute(view: View) -> Sequence[Progress]:
    began = view.steady[0].started if view.steady else view.now
    return [batch for batch in view.recent if batch.started >= began and batch.ended >= view.now - WINDOW]


def _by_topic(view: View) -> dict[str, dict[Partition, int]]:
    """Offsets that arrived in the latest minute by partition: by the heads, else by what was read."""
    fresh = _latest_minute(view)
    by_topic: dict[str, dict[Partition, int]] = {}
    if not fresh:
        return by_topic
    heads = {source.name: source.latest for source in fresh[0].sources}
    for source in fresh[-1].sources:
        first = heads.get(source.name, {})
        for partition, head in source.latest.items():
            if partition in first:
                by_topic.setdefault(partition[0], {})[partition] = max(0, head - first[partition])
    if not by_topic:
        for batch in fresh:
            for partition, count in read_by_partition(batch).items():
                arrived = by_topic.setdefault(partition[0], {})
                arrived[partition] = arrived.get(partition, 0) + count
    return by_topic


def acquit(view: View) -> str | None:
    largest = None
    for topic, arrived in _by_topic(view).items():
        total = sum(arrived.values())
        if total > 0 and len(arrived) > 1:
            largest = max(largest or (0.0, ""), (max(arrived.values()) / total, topic))
    if largest is None:
        return None
    return f"the largest partition of {largest[1]} got {largest[0]:.0%} of the rows of the last minute"


RULE = Rule(
    slug="source-partition-skew",
    severity="warning",
    check=check,
    runbook=__doc__,
    explains=("falling-behind", "trigger-overrun"),
    acquit=acquit,
)
