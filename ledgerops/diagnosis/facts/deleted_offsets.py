"""Offsets that were deleted before a query read them: by the broker, by a batch, and by the text of an exception."""

import re
from itertools import islice, pairwise
from math import inf
from typing import NamedTuple

from ledgerops.diagnosis.facts.known_failures import CREATED_AGAIN, GONE, explain
from ledgerops.diagnosis.limits import LOOKBACK_BATCHES, MOSTLY
from ledgerops.model.finding import Evidence
from ledgerops.model.head_table import offsets_read_at
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


class Rewound(NamedTuple):
    """A partition that ends before the offset that the query had read: its topic was created again, or brokers lost its
    newest records. Or whose topic was created again and has more: the query goes on `before` in it, and never reads
    what it has from `after` on."""

    partition: Partition
    before: int
    after: int
    at: float
    failed: bool  # of it; else the query has continued
    unnoticed: bool = False  # no offset went back: Spark takes the new topic for the old one

    @property
    def what(self) -> str:
        """What happened to the partition, and what the query did, as a sentence."""
        topic, number = self.partition
        if self.unnoticed:
            return (
                f"{topic} was deleted and created again: the query continued at offset {self.before:,} of the new "
                f"partition {number} and never reads those before it"
            )
        return (
            f"partition {number} of {topic} went back from offset {self.before:,} to {self.after:,}: the topic was "
            "deleted and created again, or its brokers lost records; the query "
            + ("failed because of it" if self.failed else "continued from there")
        )

    @property
    def measured(self) -> Evidence:
        """The offsets that were left out, or where the partition ends."""
        if self.unnoticed:
            return Evidence("offsets_unread", float(self.before - self.after), "offsets", "0", self.at)
        return Evidence("end_offset", float(self.after), "offsets", f">= {self.before}", self.at)


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


def rewound(view: QueryView) -> Rewound | None:
    """By the exception of a query that failed, else by the newest batches, else by the id of the topic."""
    ended = view.history.ended
    if ended is not None and ended.exception and is_loss(ended.exception):
        where, moved = PARTITION.search(ended.exception), _moved(ended.exception)
        if where is not None and moved is not None and moved[1] < moved[0]:
            return Rewound((where[1], where[2]), *moved, ended.at, failed=True)
        if (ends := _ends_before(view)) is not None:
            return Rewound(*ends, ended.at, failed=True)
    for batch in islice(reversed(view.history.batches), MIN_USUAL_BATCHES):
        for source in batch.sources:
            for partition, start in source.start.items() if source.kind == "kafka" else ():
                if (end := source.end.get(partition, start)) < start:
                    return Rewound(partition, start, end, batch.ended, failed=False)
    return _another_topic(view)


def _another_topic(view: QueryView) -> Rewound | None:
    """The partition of a topic with another id than before of which a batch left out most: the first one that began
    after the last answer about the old topic. It may have read that one still, which makes what is left out more."""
    answers = [heads for heads in view.history.heads if heads.topic_ids]
    changed = [(old, new) for old, new in pairwise(answers) if old.topic_ids != new.topic_ids]
    for old, new in reversed(changed):
        topics = {topic for topic, name in new.topic_ids.items() if old.topic_ids.get(topic, name) != name}
        batch = next((each for each in view.history.batches if each.started > old.at), None)
        if batch is None:
            continue
        found = [
            Rewound(partition, start, new.earliest[partition], batch.ended, failed=False, unnoticed=True)
            for source in batch.sources
            for partition, start in source.start.items()
            if partition[0] in topics and new.earliest.get(partition, start) < start <= source.end.get(partition, start)
        ]
        if found:
            return max(found, key=lambda each: each.before - each.after)
    return None


def _ends_before(view: QueryView) -> tuple[Partition, int, int] | None:
    """The partition that ends furthest before what the newest batch had read, by an answer of the broker to a later
    question, with both offsets."""
    heads, last = view.lag.heads, view.history.last
    if heads is None or last is None or heads.at - (heads.seconds or 0.0) < last.ended:
        return None
    read = ((partition, end) for source in last.sources for partition, end in source.end.items())
    back = [(each, end, heads.latest[each]) for each, end in read if heads.latest.get(each, end) < end]
    return max(back, key=lambda each: each[1] - each[2], default=None)


def gone_too_soon(view: QueryView, gaps: list[Gap], at: float) -> bool:
    """Whether what was gone at `at` had not been there for as long as the topic keeps its records: the newest batch had
    left nothing unread. The retention is that of the newest answer: who shortens it may have done so since."""
    heads, last = view.lag.heads, view.history.last
    if heads is None or last is None or not gaps:
        return False
    partition = gaps[0].partition
    read_all = any(each.end.get(partition, -1) >= each.latest.get(partition, inf) for each in last.sources)
    return read_all and at - offsets_read_at(last) < heads.retention_seconds.get(partition[0], 0.0)


def _moved(exception: str) -> tuple[int, int] | None:
    """The offset from which the query wanted to go on, and the one that the exception says is there instead."""
    found = next((match for gap in GAPS if (match := gap.search(exception)) is not None), None)
    return (int(found[1]), int(found[2])) if found is not None else None


def is_loss(exception: str) -> bool:
    """Whether an exception says that offsets were gone. Delta has an option of the same name, for versions; and where
    all partitions are gone, so is the topic."""
    known = explain(exception)
    name = known.name if known is not None else None
    topic = name == CREATED_AGAIN and _moved(exception) is None
    return LOSS.search(exception) is not None and name not in GONE and not topic


def gaps_in_text(exception: str) -> list[Gap]:
    """What the exception says about the first partition that it names."""
    where = PARTITION.search(exception)
    if where is None:
        return []
    before, after = _moved(exception) or (0, 0)
    return [Gap((where[1], where[2]), max(0, after - before))]
