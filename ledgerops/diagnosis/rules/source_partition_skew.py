"""Source partition skew: one partition of the source gets most of the rows.

Meaning: one task reads each source partition. The task of the largest partition still runs when the others are done.
Impact: the batch takes as long as its largest partition, and more cores do not help. The backlog of that partition
    grows while the others are up to date.
Diagnosis: 1. `topk(3, sum by (topic, partition) (ledgerops_source_backlog_offsets{query="QUERY"}))` shows which
    partitions are behind. If all of them are, the load is too high: see `input-overload`.
    2. `ledgerops_skew_ratio{query="QUERY",kind="source_partition"}` shows how uneven the rows of a batch are. Near 1
    means that the producer is even again, and only the old backlog is left.
    3. Find out how the producer chooses the partition: by a key with few distinct values, or always the same one by
    mistake.
Mitigation: repair how the producer chooses the partition, then wait until the backlog of the partition is processed.
    Until then repartition after reading, if the work after reading takes long. More partitions help only new rows, and
    only if their keys differ.
Evidence:
    partition_rows: growth of sources[].latestOffset of the partition from the first batch of W to the newest, if the
        source reports it; otherwise the sum of endOffset - startOffset over W. W = the batches that began in the last
        60 s and ended in the last window_seconds, without those of the first 10 s of the run
    partition_share: partition_rows divided by the same for all partitions of the topic
    slower_than_even: partition_share x min(partitions of the topic, cores of active executors)
    window_seconds: 15 if the query is harmed, otherwise 60. If the newest batch of a harmed query took more than 15 s:
        its duration; W is then this batch, and partition_rows the sum of endOffset - startOffset
    ledgerops_source_backlog_offsets: latestOffset - endOffset of that partition in the newest batch
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from ledgerops.diagnosis import batch_time, harm, overload, strain, task_skew
from ledgerops.diagnosis.rule import Rule
from ledgerops.model.finding import Component, Evidence, Finding, Remedy
from ledgerops.model.records import Partition, Progress
from ledgerops.signals.partitions import read_by_partition
from ledgerops.signals.query_view import QueryView
from ledgerops.signals.run import WINDOW_SECONDS

MIN_PARTITION_SHARE = 0.5  # of the topic's rows in one partition
MIN_SLOWDOWN = 1.5  # of reading, over an even split on the present cores
MIN_ROWS_PER_MINUTE = 1000  # a trickle is uneven by chance
MIN_BATCHES = 3
MIN_SPREAD_SECONDS = 5.0  # over which these batches must spread: a single flush of a producer is no skew
# enough when the query is harmed; when it is not, these seconds must not contradict the longer window
SHORT_WINDOW_SECONDS = 15.0
MIN_SHORT_WINDOW_ROWS = MIN_ROWS_PER_MINUTE * SHORT_WINDOW_SECONDS / WINDOW_SECONDS


def check(view: QueryView) -> Iterator[Finding]:
    found = {}
    if strain.strained(view) or overload.growth(view) or harm.examined(view):
        found = _uneven(view, SHORT_WINDOW_SECONDS, MIN_SHORT_WINDOW_ROWS) or _uneven_in_one(view)
    for topic, uneven in (found or _uneven(view, WINDOW_SECONDS, MIN_ROWS_PER_MINUTE)).items():
        if topic not in found and _even_by_now(view, topic):
            continue
        at = uneven.batches[-1].ended
        left = view.lag.backlog_by_partition.get(uneven.partition)
        stage = task_skew.uneven_stage(view, shuffle=False)
        number, partitions = uneven.partition[1], uneven.partitions
        evidence = [
            Evidence("partition_rows", float(uneven.rows), "offsets", f"~ {uneven.total / partitions:,.0f}", at),
            Evidence("partition_share", uneven.share, "ratio", f"< {MIN_PARTITION_SHARE:g}", at),
            Evidence("slower_than_even", uneven.factor, "ratio", f"< {MIN_SLOWDOWN:g}", at),
            Evidence("window_seconds", uneven.window, "seconds", "the observed time", at),
        ]
        if left is not None:
            evidence.append(Evidence("ledgerops_source_backlog_offsets", float(left), "offsets", "0", at))
        yield Finding(
            f"partition {number} of {topic} got {uneven.share:.0%} of the {uneven.total:,} rows of the last "
            f"{uneven.window:.0f} s; an even share would be {1 / partitions:.0%}",
            Component("partition", f"{topic}-{number}", topic),
            tuple(evidence),
            (
                Remedy(
                    "repair how the producer chooses the partition",
                    "only one task reads a partition, however many cores there are",
                ),
                Remedy(
                    "repartition after reading",
                    "spreads the work after reading, at the cost of a shuffle",
                    safe=False,
                ),
            ),
            confidence=min(0.95, 0.5 + 0.5 * uneven.share),
            began=uneven.batches[0].started,
            share=None if stage is None else min(1.0, stage.cost),
        )


class Uneven(NamedTuple):
    """The heaviest partition of a topic in a window of `window` seconds."""

    partition: Partition
    rows: int
    total: int
    partitions: int
    factor: float
    window: float
    batches: Sequence[Progress]

    @property
    def share(self) -> float:
        """Share of the topic's rows in the partition, 0 to 1."""
        return self.rows / self.total


def _uneven(view: QueryView, window: float, least: float) -> dict[str, Uneven]:
    """By topic, where one partition got so much of at least `least` rows that reading takes longer for it."""
    fresh = _batches(view, window)
    with_rows = [batch for batch in fresh if batch.rows > 0]
    if len(with_rows) < MIN_BATCHES or with_rows[-1].ended - with_rows[0].started < MIN_SPREAD_SECONDS:
        return {}
    return _heaviest(view, _by_topic(fresh), window, least, with_rows)


def _uneven_in_one(view: QueryView) -> dict[str, Uneven]:
    """The same of a single batch that took longer than the window: its rows came while the one before it ran."""
    settled = [batch for batch in view.baseline.settled if batch.rows > 0]
    newest = settled[-1] if settled else None
    before = view.batches[-2] if len(view.batches) > 1 else None
    if (
        newest is None
        or before is None
        or newest is not view.batches[-1]
        or newest.duration <= SHORT_WINDOW_SECONDS
        or before.duration < MIN_SPREAD_SECONDS
    ):
        return {}
    return _heaviest(view, _read([newest]), newest.duration, MIN_SHORT_WINDOW_ROWS, [newest])


def _heaviest(
    view: QueryView,
    by_topic: Mapping[str, Mapping[Partition, int]],
    window: float,
    least: float,
    batches: Sequence[Progress],
) -> dict[str, Uneven]:
    found = {}
    for topic, arrived in by_topic.items():
        total = sum(arrived.values())
        if total < least or len(arrived) < 2:
            continue
        heaviest = max(arrived, key=lambda partition: arrived[partition])
        factor = batch_time.slots(view, len(arrived)) * arrived[heaviest] / total
        if arrived[heaviest] >= MIN_PARTITION_SHARE * total and factor >= MIN_SLOWDOWN:
            found[topic] = Uneven(heaviest, arrived[heaviest], total, len(arrived), factor, window, batches)
    return found


def _even_by_now(view: QueryView, topic: str) -> bool:
    """Whether the latest rows contradict the last minute."""
    arrived = _by_topic(_batches(view, SHORT_WINDOW_SECONDS)).get(topic, {})
    return sum(arrived.values()) >= MIN_SHORT_WINDOW_ROWS and max(arrived.values()) < MIN_PARTITION_SHARE * sum(
        arrived.values()
    )


def _batches(view: QueryView, window: float) -> Sequence[Progress]:
    """The settled batches that began in the last minute, of them those that ended in the window."""
    began = view.baseline.steady[0].started if view.baseline.steady else view.now
    return [batch for batch in view.run.recent if batch.started >= began and batch.ended >= view.now - window]


def _by_topic(fresh: Sequence[Progress]) -> dict[str, dict[Partition, int]]:
    """Offsets that arrived by partition: by the heads, else by what was read."""
    by_topic: dict[str, dict[Partition, int]] = {}
    if not fresh:
        return by_topic
    heads = {source.name: source.latest for source in fresh[0].sources}
    for source in fresh[-1].sources:
        first = heads.get(source.name, {})
        for partition, head in source.latest.items():
            if partition in first:
                by_topic.setdefault(partition[0], {})[partition] = max(0, head - first[partition])
    return by_topic or _read(fresh)


def _read(batches: Sequence[Progress]) -> dict[str, dict[Partition, int]]:
    by_topic: dict[str, dict[Partition, int]] = {}
    for batch in batches:
        for partition, count in read_by_partition(batch).items():
            arrived = by_topic.setdefault(partition[0], {})
            arrived[partition] = arrived.get(partition, 0) + count
    return by_topic


def acquit(view: QueryView) -> str | None:
    largest = None
    for topic, arrived in _by_topic(_batches(view, WINDOW_SECONDS)).items():
        total = sum(arrived.values())
        if total > 0 and len(arrived) > 1:
            largest = max(largest or (0.0, ""), (max(arrived.values()) / total, topic))
    if largest is None:
        return None
    return f"the largest partition of {largest[1]} got {largest[0]:.0%} of the rows of the last minute"


RULE = Rule(
    "source-partition-skew", "warning", check, __doc__, ("falling-behind", "trigger-overrun"), acquit, needs_harm=True
)
