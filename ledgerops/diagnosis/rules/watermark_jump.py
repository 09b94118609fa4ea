"""Watermark jump: a row dated far ahead pushed the watermark past the rows that are on time.

Meaning: the watermark follows the newest event time, minus the delay given to `withWatermark`, and never goes back. One
    row dated in the future, or one producer with a fast clock, moves it for all inputs. Rows that are on time then
    count as late until the clock reaches the watermark.
Impact: stateful operators drop rows, and windows close too early. The dropped rows and their producers are correct.
Diagnosis: 1. `ledgerops_watermark_timestamp_seconds{query="QUERY"} - time()` shows how far the watermark is ahead of
    the clock. Above 0, it has jumped; below 0, the clock has caught up and dropping ends.
    2. The finding names the batch with the row and its offsets: search them for the newest event time. One wrong row is
    a bug in its producer; many mean a clock that is ahead.
    3. `increase(ledgerops_rows_dropped_by_watermark_total{query="QUERY"}[5m])` shows whether rows are still dropped,
    and so how urgent a repair is.
Mitigation: note the offsets, so that the dropped rows can be replayed. Filter out rows dated in the future before
    `withWatermark`, for example with `event_time <= current_timestamp() + INTERVAL 1 MINUTE`, and correct the clock of
    the producer. The checkpoint keeps the watermark, so a restart does not reset it: wait until the clock reaches it,
    or run again from before that batch with fresh state.
Evidence:
    watermark_jump_seconds: eventTime.watermark of the first batch after the jump minus that of the batch before it,
        minus the difference of their timestamps.
    event_time_max_ahead_seconds: eventTime.max minus eventTime.avg of the batch that read the row.
    event_time_max_usually_ahead_seconds: the same, median over up to 10 earlier batches with rows.
    watermark_ahead_of_rows_seconds: eventTime.watermark minus eventTime.avg of the newest batch with rows.
    jump_batch_id: batchId of the batch that read the row.
"""

from collections.abc import Iterator, Sequence
from statistics import median
from typing import NamedTuple

from ledgerops.diagnosis.rule import Rule
from ledgerops.model.finding import Component, Evidence, Finding, Remedy
from ledgerops.model.records import Progress
from ledgerops.signals.memo import once
from ledgerops.signals.partitions import read_by_partition
from ledgerops.signals.query_view import QueryView

MIN_LEAP_SECONDS = 30.0  # by which the watermark must have outrun the clock: clocks of machines differ by less
# newest row ahead of the average row of its batch, over the usual distance; all batches of a replay are wide
MIN_TIMES_USUAL = 5.0
USUAL_BATCHES = 10  # before the jump, which show what is usual
MIN_BATCHES = 3
MAX_SHOWN_PARTITIONS = 4  # source partitions whose offsets are named


class Jump(NamedTuple):
    """A jump of the watermark ahead of the clock, in seconds."""

    batch: Progress  # that read the row
    seconds: float  # by which the watermark outran the clock
    ahead: float  # of the newest row before the average row of that batch
    usual: float  # the same in earlier batches
    over: float  # the watermark before the average row of the newest batch


def check(view: QueryView) -> Iterator[Finding]:
    found = jump(view)
    if found is None or view.last is None:
        return
    batch, at = found.batch, view.last.ended
    read = [
        f"{topic}-{number} {_start(batch, topic, number)} to {_start(batch, topic, number) + count}"
        for (topic, number), count in sorted(read_by_partition(batch).items())
        if count
    ]
    places = (
        f", offsets {', '.join(read[:MAX_SHOWN_PARTITIONS])}{' and more' if len(read) > MAX_SHOWN_PARTITIONS else ''}"
        if read
        else ""
    )
    delay = max(view.plan.watermarks.values(), default=0.0)
    yield Finding(
        f"a row of batch {batch.batch_id} dated {found.ahead:,.0f} s ahead of the rest pushed the watermark "
        f"{found.seconds:,.0f} s forward; rows on time are {found.over:,.0f} s behind it",
        Component("source", ", ".join(source.name for source in batch.sources), f"batch {batch.batch_id}{places}"),
        (
            Evidence("watermark_jump_seconds", found.seconds, "seconds", f"< {MIN_LEAP_SECONDS:g}", batch.ended),
            Evidence("event_time_max_ahead_seconds", found.ahead, "seconds", f"about {found.usual:.0f}", batch.ended),
            Evidence("event_time_max_usually_ahead_seconds", found.usual, "seconds", "the usual", batch.ended),
            Evidence("watermark_ahead_of_rows_seconds", found.over, "seconds", "< 0", at),
            Evidence("jump_batch_id", float(batch.batch_id), "count", "the batch to inspect", batch.ended),
        ),
        (
            Remedy(
                "filter out rows dated ahead of the clock before withWatermark, and correct the producer's clock",
                "the newest event time of any row moves the watermark for all rows",
                command='df.where("event_time <= current_timestamp() + INTERVAL 1 MINUTE")',
                safe=False,
            ),
            Remedy(
                f"wait {found.over + delay:,.0f} s, or run again from before batch {batch.batch_id} with fresh state",
                "the watermark is in the checkpoint and never goes back; more allowed lateness no longer helps",
                safe=False,
            ),
        ),
        confidence=min(0.95, 0.75 + 0.02 * found.ahead / max(1.0, found.usual)),
        began=batch.started,
    )


def _start(batch: Progress, topic: str, number: str) -> int:
    return next(each.start[topic, number] for each in batch.sources if (topic, number) in each.start)


@once
def jump(view: QueryView) -> Jump | None:
    """The newest jump of the watermark that the rows have not caught up with; None when they are ahead of it."""
    last = view.last
    if last is None or last.watermark is None:
        return None
    newest = next((batch for batch in reversed(view.batches) if batch.event_time_avg is not None), None)
    if newest is None or newest.event_time_avg is None or last.watermark <= newest.event_time_avg:
        return None
    return _leap(list(view.history.batches), last.watermark - newest.event_time_avg)


def _leap(batches: Sequence[Progress], over: float) -> Jump | None:
    """The batch by which the watermark moved ahead of the clock, and by how much."""
    for index in range(len(batches) - 1, 0, -1):
        after, before = batches[index], batches[index - 1]
        if after.watermark is None or before.watermark is None:
            continue
        leapt = after.watermark - before.watermark - max(0.0, after.started - before.started)
        if leapt < MIN_LEAP_SECONDS:
            continue
        # the batch that read the row is the one before the leap: its newest row moves the watermark of the next
        if before.event_time_max is None or before.event_time_avg is None:
            return None
        ahead = before.event_time_max - before.event_time_avg
        leaps = [
            batch.event_time_max - batch.event_time_avg
            for batch in batches[max(0, index - 1 - USUAL_BATCHES) : index - 1]
            if batch.event_time_max is not None and batch.event_time_avg is not None
        ]
        if (
            len(leaps) < MIN_BATCHES
            or ahead < max(MIN_LEAP_SECONDS, MIN_TIMES_USUAL * median(leaps))
            or not _stands_out(before, batches[index:])
        ):
            return None
        return Jump(before, leapt, ahead, median(leaps), over)
    return None


def _stands_out(read: Progress, later: Sequence[Progress]) -> bool:
    """Whether its newest row is ahead of the clock, or at least of all that was read since.

    Where partitions are read to different times, the foremost goes on from where it is.
    """
    top = read.event_time_max or 0.0
    if top > read.ended + MIN_LEAP_SECONDS:
        return True
    newer = [batch.event_time_max for batch in later if batch.event_time_max is not None]
    return len(newer) >= MIN_BATCHES and max(newer) < top - MIN_LEAP_SECONDS


RULE = Rule("watermark-jump", "warning", check, __doc__, ("rows-dropped", "late-data"), linger=10.0, at_rest=True)
