"""Data loss: rows were deleted before the query had read them, or its sink did not write them.

Meaning: the topic has deleted records that the query had not read. Either the next offset to read is older than the
    oldest in the topic, or a batch read fewer rows than its offsets cover, or the query failed because it noticed
    (`failOnDataLoss`). Or the topic was deleted and created again: it ends before what was read, or has another id. Or
    a file sink skipped batches: the log of its output folder, `_spark_metadata`, has their numbers from another
    checkpoint. Or the function of `foreachBatch` caught what its write failed with, and its rows were not written.
Impact: these rows are in no output, and never will be unless they are read from elsewhere. With `failOnDataLoss` =
    false the query continues without an error.
Diagnosis: 1. The finding names the topic, the partition and the number of offsets.
    `min by (topic, partition) (ledgerops_retention_headroom_seconds{app="APP",query="QUERY"})` shows other partitions
    near 0: they will lose rows next.
    2. Compare `max(ledgerops_source_lag_seconds{app="APP",query="QUERY"})` before the loss with the retention of the
    topic. If the lag exceeded the retention, the query was too slow or down: see its other findings.
    3. If the lag was small, the retention or the topic changed:
    `kafka-configs.sh --bootstrap-server SERVERS --describe --entity-type topics --entity-name TOPIC`.
    4. If the sink skipped batches, find out which checkpoint or query the numbers in `_spark_metadata` are from.
Mitigation: raise the retention of the topic first, so that no more rows are lost. Then read the missing rows from
    another copy (the producer's own store, a mirror, an archive) with a separate query. To let a failed query continue,
    start it once with `failOnDataLoss` = false, then set it back to true. Do not start with a new checkpoint: that
    would lose the state too. In a topic that was created again it goes on at the end: read what is before that, too. If
    the sink skips: stop the query unless it has written since, and read what was skipped again, into a new folder.
Evidence:
    offsets_lost: earliest of the newest record `offsets` - endOffset of the newest batch, over the partitions where
        that is positive; if the query failed, the difference of the offsets in the exception; if it continued,
        batch_offsets - batch_rows / the usual rows per offset
    offsets_unread: startOffset of the first batch after the last record `offsets` with the former topic_ids, less
        earliest of the next one
    end_offset: endOffset of the batch where it is below startOffset, or by the exception; or `latest`, asked after it
    ledgerops_retention_headroom_seconds: 0: earliest is above the next offset to read
    batch_rows: numInputRows of the source in the batch whose range includes the deleted offsets
    batch_offsets: sum of endOffset - startOffset over the partitions of that batch and source
    ledgerops_query_failures_total: number of `terminated` records of the query with an exception
    unwritten_batches: of the newest 60 of the run, those with an endOffset that is not the startOffset, and a record
        `tasks` that is whole and has `failed` statements and no stage
    skipped_batches: of the newest 60 of the run, those with numInputRows 0 and an endOffset that is not the
        startOffset, up to the newest batchId with files in its records `tables`, `at` before the run began
"""

from collections.abc import Iterator

from ledgerops.common.format import counted
from ledgerops.diagnosis.facts import deleted_offsets as deleted
from ledgerops.diagnosis.facts.context import source_names
from ledgerops.diagnosis.facts.failures import failures
from ledgerops.diagnosis.facts.hidden_failures import hidden_failures
from ledgerops.diagnosis.facts.skipped_batches import skipped_by_sink
from ledgerops.diagnosis.rule import Rule
from ledgerops.metrics.first_steps import GENERAL, first_step
from ledgerops.metrics.pressure import HEADROOM
from ledgerops.model.finding import Component, Evidence, Finding, Remedy
from ledgerops.signals.query_view import QueryView

EXPLAINS = ("query-failed", "statement-retries")
LINGER = 600.0  # seconds: the query may continue at once, but the rows stay lost
CONTINUE = Remedy(
    "start the query once with failOnDataLoss = false so that it continues",
    "the checkpoint keeps the state; a new checkpoint would lose it too",
    safe=False,
)
NOTICE = Remedy(
    "start the query with failOnDataLoss = true",
    "it then fails when rows are missing instead of continuing silently",
    safe=False,
)
READ_APART = Remedy("read the rows before that offset with another query", "Spark takes the topic for the old one")


def check(view: QueryView) -> Iterator[Finding]:
    gaps, ended = deleted.deleted_gaps(view), view.history.ended
    if (back := deleted.rewound(view)) is not None:
        yield _created_again(view, back)
    elif ended is not None and ended.exception and deleted.is_loss(ended.exception):
        yield _unread(view, gaps or deleted.gaps_in_text(ended.exception), ended.at, failed=True)
    elif gaps and view.lag.heads is not None:
        yield _unread(view, gaps, view.lag.heads.at, failed=False)
    elif (skipped := deleted.skipped_batch(view)) is not None:
        yield _passed_over(skipped)
    elif (unwritten := skipped_by_sink(view) or hidden_failures(view)) is not None:
        yield unwritten


def _passed_over(skipped: deleted.Skipped) -> Finding:
    batch, at, others = skipped.batch, skipped.batch.ended, len(skipped.gaps) - 1
    topic, partition = skipped.gaps[0].partition
    more = f" and {counted(others, 'more partition')}" if others else ""
    return Finding(
        f"{counted(skipped.lost, 'offset')} of partition {partition}{more} of {topic} "
        f"{'was' if skipped.lost == 1 else 'were'} deleted before "
        f"batch {batch.batch_id} could read them; the query continued without them",
        Component("partition", f"{topic}-{partition}", topic),
        (
            Evidence("offsets_lost", float(skipped.lost), "offsets", "0", at),
            Evidence("batch_rows", float(skipped.source.rows), "rows", "as many as offsets", at),
            Evidence("batch_offsets", float(skipped.source.read), "offsets", "as many as rows", at),
        ),
        (_stop_the_loss(topic), NOTICE),
        confidence=0.95,
        began=batch.started,
    )


def _created_again(view: QueryView, back: deleted.Rewound) -> Finding:
    topic, partition = back.partition
    then = CONTINUE if back.failed else READ_APART if back.unnoticed else NOTICE
    return Finding(
        back.what,
        Component("partition", f"{topic}-{partition}", topic),
        (back.measured, *([failures(view, back.at)] if back.failed else [])),
        (first_step("data-loss", "created again", "the checkpoint has offsets of the old topic", topic=topic), then),
        confidence=0.95,
        began=back.at,
    )


def _unread(view: QueryView, gaps: list[deleted.Gap], at: float, failed: bool) -> Finding:
    """The partition with the largest gap comes first; where none is known, the source is named."""
    what = "the source has deleted offsets that the query had not read"
    component = Component("source", source_names(view))
    evidence = [failures(view, at) if failed else Evidence(HEADROOM.name, 0.0, "seconds", "> 0", at)]
    if gaps:
        (topic, partition), first = gaps[0]
        lost, others = sum(gap.offsets for gap in gaps), len(gaps) - 1
        size = counted(first, "offset") if first else "offsets"
        more = f" and {lost - first:,} of {counted(others, 'more partition')}" if others else ""
        verb, them = ("was", "it") if first == 1 and not others else ("were", "them")
        what = f"{size} of partition {partition} of {topic}{more} {verb} deleted before the query had read {them}"
        component = Component("partition", f"{topic}-{partition}", topic)
        if first:
            evidence.insert(0, Evidence("offsets_lost", float(lost), "offsets", "0", at))
    soon = failed and deleted.gone_too_soon(view, gaps, at)
    return Finding(
        what + ", sooner than the topic deletes by age" * soon + "; the query failed because of it" * failed,
        component,
        tuple(evidence),
        (_stop_the_loss(component.detail, soon), *([CONTINUE] if failed else [])),
        confidence=0.95,
        began=at,
    )


def _stop_the_loss(topic: str | None, soon: bool = False) -> Remedy:
    longer = "a longer retention takes effect at once; the topic no longer has what was deleted"
    why = "the retention that it had deletes nothing so young" if soon else longer
    return first_step("data-loss", "too soon" if soon else GENERAL, why, topic=topic or "the topic")


RULE = Rule("data-loss", "critical", check, __doc__, EXPLAINS, linger=LINGER, outlives=True, at_rest=True, urgent=True)
