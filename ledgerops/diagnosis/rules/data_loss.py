"""Data loss: rows were deleted before the query had read them.

Meaning: the topic has deleted records that the query had not read. Either the next offset to read is older than the
    oldest in the topic, or a batch read fewer rows than its offsets cover, or the query failed because it noticed
    (`failOnDataLoss`).
Impact: these rows are in no output, and never will be unless they are read from elsewhere. With `failOnDataLoss` =
    false the query continues without an error.
Diagnosis: 1. The finding names the topic, the partition and the number of offsets.
    `min by (topic, partition) (ledgerops_retention_headroom_seconds{query="QUERY"})` shows other partitions near 0:
    they will lose rows next.
    2. Compare `max(ledgerops_source_lag_seconds{query="QUERY"})` before the loss with the retention of the topic. If
    the lag exceeded the retention, the query was too slow or down: see its other findings.
    3. If the lag was small, the retention or the topic changed:
    `kafka-configs.sh --describe --entity-type topics --entity-name TOPIC`.
Mitigation: raise the retention of the topic first, so that no more rows are lost. Then read the missing rows from
    another copy (the producer's own store, a mirror, an archive) with a separate query. To let a failed query continue,
    start it once with `failOnDataLoss` = false, then set it back to true. Do not start with a new checkpoint: that
    would lose the state too.
Evidence:
    offsets_lost: if the query has not continued yet: earliest of the newest `offsets` record minus sources[].endOffset
        of the newest batch, summed over the partitions where it is positive. If it failed: the difference of the two
        offsets in the exception. If a batch continued past them: batch_offsets minus batch_rows divided by the usual
        rows per offset (the highest of the 20 batches before; 1 if there are fewer than 5).
    ledgerops_retention_headroom_seconds: 0, because earliest in the `offsets` record is above the next offset to read
    batch_rows: sources[].numInputRows of the batch whose offset range includes the deleted offsets
    batch_offsets: sum of endOffset - startOffset over the partitions of the same batch and source
    ledgerops_query_failures_total: number of `terminated` records of the query with an exception so far
"""

import re
from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

from ledgerops.common.format import counted
from ledgerops.diagnosis.rule import Rule
from ledgerops.metrics.pressure import HEADROOM
from ledgerops.model.finding import Component, Evidence, Finding, Remedy
from ledgerops.model.records import Partition, Progress, SourceProgress
from ledgerops.signals.query_view import QueryView

LOSS = re.compile(r"failOnDataLoss|KAFKA_DATA_LOSS|OffsetOutOfRange|data (may|might) have been (lost|missed)")
PARTITION = re.compile(r"(?:partition|TopicPartition:?|for)\s+([\w.-]+)-(\d+)\b", re.IGNORECASE)
GAPS = (
    re.compile(r"was changed from (\d+) to (\d+)"),
    re.compile(r"was (\d+) but consumer reset to (\d+)"),
    re.compile(r"in range \[(\d+), ?(\d+)\)"),
    re.compile(r"offsets? (?:in )?\[?(\d+), ?(\d+)\)"),
)
LINGER_SECONDS = 600.0  # the query may continue at once, but the rows stay lost
NEWEST_BATCHES = 5  # searched for deleted offsets; after that the finding lingers
USUAL_BATCHES = 20  # before a batch, which show how many rows an offset gives
MIN_USUAL_BATCHES = 5  # with fewer of them each offset counts as one row
# how long after a batch the broker may be asked: by then it has also deleted rows that were read
MAX_ANSWER_SECONDS = 5.0
# by how much the rows per offset may differ between batches: transactions leave offsets without rows
MAX_DEVIATION_SHARE = 0.01
MIN_AGREEING_SHARE = 0.5  # of the offsets that the broker reports as deleted: so many rows must be missing
READ_AGAIN = Remedy("read the missing rows from another copy", "the topic no longer has them")


class Gap(NamedTuple):
    """Offsets of one partition that were deleted before the query read them."""

    partition: Partition
    offsets: int


class Skipped(NamedTuple):
    """A batch that has gone over offsets that were gone, with what the topic no longer had, by partition."""

    batch: Progress
    source: SourceProgress
    offsets: int  # from the batch's start to its end
    lost: int
    gaps: list[Gap]


def check(view: QueryView) -> Iterator[Finding]:
    gaps = _gaps(view)
    ended = view.history.ended
    reported = ended.exception if ended is not None and ended.exception and LOSS.search(ended.exception) else None
    if reported is not None and ended is not None:
        yield _finding(view, gaps or _gaps_in_text(reported), ended.at, failed=True)
    elif gaps and view.lag.heads is not None:
        yield _finding(view, gaps, view.lag.heads.at, failed=False)
    elif (skipped := _skipped(view)) is not None:
        yield _passed_over(skipped)


def _gaps(view: QueryView) -> list[Gap]:
    """What is missing by the broker's own word, the largest first."""
    heads = view.lag.heads
    if heads is None:
        return []
    found = [
        Gap(partition, earliest - end)
        for partition, end in view.lag.consumed.items()
        if (earliest := heads.earliest.get(partition)) is not None and end < earliest
    ]
    return sorted(found, key=lambda gap: -gap.offsets)


def _skipped(view: QueryView) -> Skipped | None:
    """The newest batch that read fewer rows than its offsets promise, because the topic had lost some of them.

    Neither is enough alone: rows are deleted after they were read, and a sink may not ask for all rows of a batch.
    """
    for place, batch in enumerate(islice(reversed(view.history.batches), NEWEST_BATCHES)):
        for source in batch.sources:
            offsets = source.read
            if source.rows >= offsets:
                continue
            gaps = _deleted_before(view, batch, source)
            usual = _rows_for_an_offset(view, place, source.name) if gaps else None
            if usual is None:
                continue
            lost = round(offsets - source.rows / usual)
            if lost > MAX_DEVIATION_SHARE * offsets and lost >= MIN_AGREEING_SHARE * sum(gap.offsets for gap in gaps):
                return Skipped(batch, source, offsets, lost, gaps)
    return None


def _rows_for_an_offset(view: QueryView, place: int, name: str) -> float | None:
    """In the batches before the one at `place` from the end; None when they differ."""
    found = []
    for batch in islice(reversed(view.history.batches), place + 1, place + 1 + USUAL_BATCHES):
        for source in batch.sources:
            if source.name == name and source.read > 0:
                found.append(source.rows / source.read)
    if len(found) < MIN_USUAL_BATCHES:
        return 1.0
    most = max(found)
    return most if most > 0 and most - min(found) <= MAX_DEVIATION_SHARE * most else None


def _deleted_before(view: QueryView, batch: Progress, source: SourceProgress) -> list[Gap]:
    """What the topic no longer had when it was asked soon after the start of a batch, the largest first."""
    asked = next((heads for heads in view.history.heads if heads.at >= batch.started and heads.error is None), None)
    if asked is None or asked.at > batch.ended + MAX_ANSWER_SECONDS:
        return []
    found = []
    for partition, begin in source.start.items():
        earliest = asked.earliest.get(partition, 0)
        if earliest <= begin:  # nearly always
            continue
        gone = min(earliest, source.end.get(partition, begin)) - begin
        if gone > 0:
            found.append(Gap(partition, gone))
    return sorted(found, key=lambda gap: -gap.offsets)


def _passed_over(skipped: Skipped) -> Finding:
    batch, source, at = skipped.batch, skipped.source, skipped.batch.ended
    topic, partition = skipped.gaps[0].partition
    more = f" and {_more(len(skipped.gaps) - 1)}" if len(skipped.gaps) > 1 else ""
    return Finding(
        f"{counted(skipped.lost, 'offset')} of partition {partition}{more} of {topic} "
        f"{'was' if skipped.lost == 1 else 'were'} deleted before "
        f"batch {batch.batch_id} could read them; the query continued without them",
        Component("partition", f"{topic}-{partition}", topic),
        (
            Evidence("offsets_lost", float(skipped.lost), "offsets", "0", at),
            Evidence("batch_rows", float(source.rows), "rows", "as many as offsets", at),
            Evidence("batch_offsets", float(skipped.offsets), "offsets", "as many as rows", at),
        ),
        (
            READ_AGAIN,
            Remedy("raise the retention of the topic", "otherwise the next pause of the query loses rows again"),
            Remedy(
                "start the query with failOnDataLoss = true",
                "it then fails when rows are missing instead of continuing silently",
                safe=False,
            ),
        ),
        confidence=0.95,
        began=batch.started,
    )


def _more(partitions: int) -> str:
    return counted(partitions, "more partition")


def _gaps_in_text(exception: str) -> list[Gap]:
    """What the exception says about the first partition that it names."""
    where = PARTITION.search(exception)
    if where is None:
        return []
    sizes = [abs(int(match[2]) - int(match[1])) for gap in GAPS if (match := gap.search(exception)) is not None]
    return [Gap((where[1], where[2]), sizes[0] if sizes else 0)]


def _finding(view: QueryView, gaps: list[Gap], at: float, failed: bool) -> Finding:
    evidence = []
    if gaps:
        topic, partition = gaps[0].partition
        size = counted(gaps[0].offsets, "offset") if gaps[0].offsets else "offsets"
        verb, them = ("was", "it") if gaps[0].offsets == 1 and len(gaps) == 1 else ("were", "them")
        more = f" and {sum(gap.offsets for gap in gaps[1:]):,} of {_more(len(gaps) - 1)}" * (len(gaps) > 1)
        what = f"{size} of partition {partition} of {topic}{more} {verb} deleted before the query had read {them}"
        component = Component("partition", f"{topic}-{partition}", topic)
        if gaps[0].offsets:
            evidence.append(Evidence("offsets_lost", float(sum(gap.offsets for gap in gaps)), "offsets", "0", at))
    else:
        what = "the source has deleted offsets that the query had not read"
        component = Component(
            "source", ",".join(source.name for source in view.last.sources) if view.last else "source"
        )
    if failed:
        failures = float(max(1, sum(view.history.failures.values())))
        evidence.append(Evidence("ledgerops_query_failures_total", failures, "count", "0", at))
        tail = "; the query failed because of it"
    else:
        evidence.append(Evidence(HEADROOM.name, 0.0, "seconds", "> 0", at))
        tail = ""
    return Finding(
        what + tail,
        component,
        tuple(evidence),
        (
            READ_AGAIN,
            Remedy(
                "start the query once with failOnDataLoss = false so that it continues",
                "the checkpoint keeps the state; a new checkpoint would lose it too",
                safe=False,
            )
            if failed
            else Remedy("raise the retention of the topic", "otherwise the next pause of the query loses rows again"),
        ),
        confidence=0.95,
        began=at,
    )


RULE = Rule(
    "data-loss", "critical", check, __doc__, ("query-failed",), linger=LINGER_SECONDS, outlives=True, at_rest=True
)
