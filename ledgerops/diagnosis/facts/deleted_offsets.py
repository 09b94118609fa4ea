"""Offsets that were deleted before a query read them: by the broker, by a batch, and by the text of an exception."""

import re
from itertools import islice
from typing import NamedTuple

from ledgerops.diagnosis.facts.known_failures import GONE, explain
from ledgerops.diagnosis.limits import LOOKBACK_BATCHES, MOSTLY
from ledgerops.model.records import Partition, Progress, SourceProgress
from ledgerops.signals.baseline import MIN_USUAL_BATCHES
from ledgerops.signals.query_view import QueryView

LOSS = re.compile(r"failOnDataLoss|KAFKA_DATA_LOSS|OffsetOutOfRange|data (may|might) have been (lost|missed)")
PARTITION = re.compile(r"(?:partition|TopicPartition:?|for)\s+([\w.-]+)-(\d+)\b", re.IGNORECASE)
GAPS = (
    re.compile(r"was changed from (\d+) to (\d+)"),
    re.compile(r"was (\d+) but consumer reset to (\d+)"),
    re.compile(r"in range \[(\d+), ?(\d+)\)"),
    re.compile(r"offsets? (?:in )?\[?(\d+), ?(\d+)\)"),
)
# between a batch's start or end and an answer of the broker that shows what the batch saw
MAX_ANSWER_SECONDS = 5.0
# by how much the rows per offset may differ between batches: transactions leave offsets without rows
MAX_DEVIATION_SHARE = 0.01


class Gap(NamedTuple):
    """Offsets of one partition that were deleted before the query read them."""

    partition: Partition
    offsets: int


class Skipped(NamedTuple):
    """A batch that has gone over offsets that were gone, with what the topic no longer had, by partition."""

    batch: Progress
    source: SourceProgress
    lost: int
    gaps: list[Gap]


def deleted_gaps(view: QueryView) -> list[Gap]:
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


def skipped_batch(view: QueryView) -> Skipped | None:
    """The newest batch that read fewer rows than its offsets promise, because the topic had lost some of them.

    Neither is enough alone: rows are deleted after they were read, and a sink may not ask for all rows of a batch.
    """
    for place, batch in enumerate(islice(reversed(view.history.batches), MIN_USUAL_BATCHES)):
        for source in batch.sources:
            offsets = source.read
            if source.rows >= offsets:
                continue
            gaps = _deleted_before(view, batch, source)
            usual = _rows_for_an_offset(view, place, source.name) if gaps else None
            if usual is None:
                continue
            lost = round(offsets - source.rows / usual)
            if lost > MAX_DEVIATION_SHARE * offsets and lost >= MOSTLY * sum(gap.offsets for gap in gaps):
                return Skipped(batch, source, lost, gaps)
    return None


def _rows_for_an_offset(view: QueryView, place: int, name: str) -> float | None:
    """In the batches before the one at `place` from the end; None when they differ."""
    found = []
    for batch in islice(reversed(view.history.batches), place + 1, place + 1 + LOOKBACK_BATCHES):
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
    found = [
        Gap(partition, min(earliest, source.end[partition]) - begin)
        for partition, begin in source.start.items()
        if (earliest := asked.earliest.get(partition, 0)) > begin and source.end.get(partition, begin) > begin
    ]
    return sorted(found, key=lambda gap: -gap.offsets)


def is_loss(exception: str) -> bool:
    """Whether an exception says that offsets were gone. Delta has an option of the same name, for versions."""
    known = explain(exception)
    return LOSS.search(exception) is not None and not (known is not None and known.name in GONE)


def gaps_in_text(exception: str) -> list[Gap]:
    """What the exception says about the first partition that it names."""
    where = PARTITION.search(exception)
    if where is None:
        return []
    sizes = [abs(int(match[2]) - int(match[1])) for gap in GAPS if (match := gap.search(exception)) is not None]
    return [Gap((where[1], where[2]), sizes[0] if sizes else 0)]
