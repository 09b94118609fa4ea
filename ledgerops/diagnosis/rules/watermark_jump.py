"""Watermark jump: a row dated far ahead pushed the watermark past the rows that are on time.

Meaning: the watermark follows the newest event time, minus the delay given to `withWatermark`, and never goes back. One
    row dated in the future, or one producer with a fast clock, moves it for all inputs. Rows that are on time then
    count as late until the clock reaches the watermark.
Impact: stateful operators drop rows, and windows close too early. The dropped rows and their producers are correct.
Diagnosis: 1. `ledgerops_watermark_timestamp_seconds{app="APP",query="QUERY"} - time()` shows how far the watermark is
    ahead of the clock. Above 0, it has jumped; below 0, the clock has caught up and dropping ends.
    2. The finding names the batch with the row and its offsets, or the list of its files: search them for the newest
    event time. One wrong row is a bug in its producer; many mean a clock that is ahead. The year 58865 means
    milliseconds that were read as seconds.
    3. `increase(ledgerops_rows_dropped_by_watermark_total{app="APP",query="QUERY"}[5m])` shows whether rows are still
    dropped, and so how urgent a repair is.
Mitigation: note the offsets, so that the dropped rows can be replayed. Read milliseconds with `timestamp_millis`.
    Filter out rows dated in the future before
    `withWatermark`, for example with `event_time <= current_timestamp() + INTERVAL 1 MINUTE`, and correct the clock of
    the producer. The checkpoint keeps the watermark, so a restart does not reset it: wait until the clock reaches it,
    or run again from before that batch with fresh state.
Evidence:
    watermark_jump_seconds: growth of eventTime.watermark from the batch before the jump to the next - that of the clock
    event_time_max_ahead_seconds: eventTime.max - eventTime.avg of the batch that read the row
    event_time_max_usually_ahead_seconds: the same, median over up to 10 earlier batches with rows
    watermark_ahead_of_rows_seconds: eventTime.watermark of the newest batch - eventTime.avg of the newest with rows, or
        its end if that is earlier
    watermark_ahead_of_clock_seconds: eventTime.watermark of the newest batch - its end
    event_time_ahead_of_clock_seconds: eventTime.max of the newest batch with one at or above the watermark - its end
    jump_batch_id: batchId of the batch that read the row; where no jump is known, of the last one before those whose
        eventTime.watermark is ahead of their end
    newest_event_time_seconds: eventTime.max of that batch, or eventTime.watermark, where it is probably no time
"""

from collections.abc import Iterator

from ledgerops.common.format import duration
from ledgerops.diagnosis.facts.dropped import dropped
from ledgerops.diagnosis.facts.slow_writes import COMPACTION_BATCHES
from ledgerops.diagnosis.facts.watermark_ahead import MIN_LEAP_SECONDS, MIN_TIMES_USUAL_WIDTH, Jump, jump
from ledgerops.diagnosis.proof import MAX_TOLD
from ledgerops.diagnosis.rule import CLEAR, Rule, confidence
from ledgerops.metrics.first_steps import GENERAL, first_step
from ledgerops.model.finding import Component, Evidence, Finding, Remedy
from ledgerops.model.records import Progress
from ledgerops.model.sources.files import FILES
from ledgerops.signals.partitions import read_by_partition
from ledgerops.signals.query_view import QueryView

MILLISECONDS = "df.withColumn('event_time', F.timestamp_millis('event_time_ms'))"


def check(view: QueryView) -> Iterator[Finding]:
    found, lost = jump(view), dropped(view)
    if found is None or view.last is None:
        return
    limit = max(MIN_LEAP_SECONDS, MIN_TIMES_USUAL_WIDTH * (found.usual or 0.0))
    yield Finding(
        _summary(found) + (f"; {lost.words} were dropped {lost.lately}" if lost is not None else ""),
        Component("source", ", ".join(source.name for source in view.last.sources), _place(found.batch)),
        tuple(_evidence(found, view.last)),
        _remedies(found, view.plan.lateness or 0.0),
        confidence=CLEAR if found.misread is not None else confidence(found.clock or found.ahead or 0.0, limit),
        began=found.batch.started if found.batch is not None else None,
        share=lost.known_share if lost is not None else None,
    )


def _summary(found: Jump) -> str:
    row = "a row" if found.batch is None else f"a row of batch {found.batch.batch_id}"
    if found.misread is not None:
        return f"the newest event time is {found.misread.question} It is that of {row}, and the watermark follows it"
    if found.clock is not None:
        since = f" since batch {found.batch.batch_id}" if found.batch is not None else ""
        return (
            f"rows dated up to {duration(found.ahead)} ahead of the clock hold the watermark {duration(found.clock)} "
            f"ahead of it{since}; rows on time are {duration(found.over)} behind the watermark"
        )
    return (
        f"{row} dated {duration(found.ahead)} ahead of the rest pushed the watermark {duration(found.seconds)} "
        f"forward; rows on time are {duration(found.over)} behind it"
    )


def _place(batch: Progress | None) -> str | None:
    """Where to search for the row: the batch, and its offsets where the source has them. Spark's own source of files
    lists the files of each offset in the checkpoint."""
    if batch is None:
        return None
    lists = [
        f"sources/{number}/{entry}" + (f" or {entry}.compact" if (entry + 1) % COMPACTION_BATCHES == 0 else "")
        for number, source in enumerate(batch.sources)
        if source.kind == FILES.name and source.rows
        for entry in source.end.values()
    ]
    others = [source.start for source in batch.sources if source.kind != FILES.name]
    starts = {partition: offset for start in others for partition, offset in start.items()}
    read = [
        f"{topic}-{number} {starts[topic, number]} to {starts[topic, number] + count}"
        for (topic, number), count in sorted(read_by_partition(batch).items())
        if count and (topic, number) in starts
    ]
    more = " and more" if len(read) > MAX_TOLD else ""
    places = [f"offsets {', '.join(read[:MAX_TOLD])}{more}"] * bool(read)
    places += [f"files listed in {', '.join(lists)} of the checkpoint"] * bool(lists)
    return ", ".join([f"batch {batch.batch_id}", *places])


def _evidence(found: Jump, last: Progress) -> Iterator[Evidence]:
    at = last.ended if found.batch is None else found.batch.ended
    if found.seconds is not None:
        yield Evidence("watermark_jump_seconds", found.seconds, "seconds", f"< {MIN_LEAP_SECONDS:g}", at)
    if found.misread is not None:
        yield Evidence("newest_event_time_seconds", found.misread.at, "seconds", f"<= {at:.0f}", at)
    elif found.clock is not None and found.ahead is not None:
        limit = f"< {MIN_LEAP_SECONDS:g}"
        yield Evidence("watermark_ahead_of_clock_seconds", found.clock, "seconds", limit, last.ended)
        yield Evidence("event_time_ahead_of_clock_seconds", found.ahead, "seconds", "<= 0", last.ended)
    elif found.ahead is not None and found.usual is not None:
        yield Evidence("event_time_max_ahead_seconds", found.ahead, "seconds", f"about {found.usual:.0f}", at)
        yield Evidence("event_time_max_usually_ahead_seconds", found.usual, "seconds", "the usual", at)
    yield Evidence("watermark_ahead_of_rows_seconds", found.over, "seconds", "< 0", last.ended)
    if found.batch is not None:
        yield Evidence("jump_batch_id", float(found.batch.batch_id), "count", "the batch to inspect", at)


def _remedies(found: Jump, delay: float) -> tuple[Remedy, ...]:
    before = "from before the first such row" if found.batch is None else f"from before batch {found.batch.batch_id}"
    if found.misread is not None:
        why, command = "a number is read as seconds: `timestamp_millis` reads milliseconds", MILLISECONDS
        again = Remedy(f"run again {before} with fresh state", "the watermark is in the checkpoint", safe=False)
        return first_step("watermark-jump", "misread", why, command=command), again
    return (
        first_step("watermark-jump", GENERAL, "the offsets of the batch say where its rows came from"),
        Remedy(
            "filter out rows dated ahead of the clock before withWatermark",
            "the newest event time of any row moves the watermark for all rows",
            command='df.where("event_time <= current_timestamp() + INTERVAL 1 MINUTE")',
            safe=False,
        ),
        Remedy(
            f"wait {duration(found.over + delay)} from the last such row on, or run again {before} with fresh state",
            "the watermark is in the checkpoint and never goes back; more allowed lateness no longer helps",
            safe=False,
        ),
    )


RULE = Rule("watermark-jump", "warning", check, __doc__, ("rows-dropped", "late-data"), linger=10.0, at_rest=True)
