"""A watermark that is ahead of the rows that are on time, and the batch whose row moved it there."""

from collections.abc import Sequence
from itertools import takewhile
from statistics import median
from typing import NamedTuple

from ledgerops.common.format import duration
from ledgerops.diagnosis.facts.dropped import dropped
from ledgerops.diagnosis.facts.misread_time import Misread, misread
from ledgerops.diagnosis.limits import SHOWN_BATCHES
from ledgerops.model.records import Progress
from ledgerops.signals.baseline import RECENT_BATCHES
from ledgerops.signals.memo import once
from ledgerops.signals.query_view import QueryView

# of event time: clocks of machines, and what producers send before their newest, differ by less
MIN_LEAP_SECONDS = 30.0
# newest row ahead of the average row of its batch, over the usual distance; all batches of a replay are wide
MIN_TIMES_USUAL_WIDTH = 5.0


class Jump(NamedTuple):
    """A jump of the watermark ahead of the clock, in seconds."""

    batch: Progress | None  # that read the row; None where it is no longer remembered
    seconds: float | None  # by which the watermark outran the clock; None for the first watermark
    ahead: float | None  # of the newest row before the average row of that batch
    usual: float | None  # the same in earlier batches
    over: float  # the watermark before the rows of the newest batch that are on time
    misread: Misread | None  # where the row's time is probably none
    clock: float | None = None  # by which the watermark is ahead of the clock now, where no jump of it is known

    @property
    def because(self) -> str:
        """Why rows that are dropped behind this watermark are not late."""
        if self.misread is not None:
            return f"the watermark is {self.misread.question} The dropped rows arrived on time"
        if self.clock is not None:
            return f"the watermark is {duration(self.clock)} ahead of the clock: the dropped rows arrived on time"
        return f"the watermark jumped {duration(self.seconds or 0.0)} forward: the dropped rows arrived on time"


@once
def jump(view: QueryView) -> Jump | None:
    """The newest jump of the watermark that the rows have not caught up with; None when they are ahead of it."""
    last = view.last
    newest = next((batch for batch in reversed(view.batches) if batch.event_time_avg is not None), None)
    if last is None or last.watermark is None or newest is None:
        return None
    # not later than the batch, for a row in the far future moves the average, too
    over = last.watermark - min(newest.event_time_avg or 0.0, newest.ended)
    if over <= 0:
        return None
    batches = list(view.history.batches)
    by_clock = _ahead_of_clock(batches, newest, last, over) if dropped(view) is not None else None
    return _far_ahead(batches, last, over) or by_clock or _leap(batches, over)


def _far_ahead(batches: Sequence[Progress], last: Progress, over: float) -> Jump | None:
    """The first batch with a row so far ahead that its time is probably none, while the watermark is there."""
    found = misread(last.watermark, last.ended)
    if found is None or not found.ahead:
        return None
    for place, batch in enumerate(batches):
        row = misread(batch.event_time_max, batch.ended)
        if row is not None and row.ahead:
            return Jump(batch, _outrun(batches[place : place + 2]), _width(batch), None, over, row)
    return Jump(None, None, None, None, over, found)


def _leap(batches: Sequence[Progress], over: float) -> Jump | None:
    """The newest batch with a row that stands out, by which the watermark moved ahead of the clock."""
    for place in range(len(batches) - 1, 0, -1):
        # the batch that read the row is the one before the leap: its newest row moves the watermark of the next
        read, leapt = batches[place - 1], _outrun(batches[place - 1 : place + 1])
        if leapt is None or leapt < MIN_LEAP_SECONDS:
            continue
        ahead = _width(read)
        before = batches[max(0, place - 1 - 2 * SHOWN_BATCHES) : place - 1]
        widths = [width for batch in before if (width := _width(batch)) is not None]
        if ahead is None or len(widths) < RECENT_BATCHES:
            return None
        usual = median(widths)
        if ahead < max(MIN_LEAP_SECONDS, MIN_TIMES_USUAL_WIDTH * usual) or not _stands_out(read, batches[place:]):
            return None
        return Jump(read, leapt, ahead, usual, over, None)
    return None


def _ahead_of_clock(batches: Sequence[Progress], newest: Progress, last: Progress, over: float) -> Jump | None:
    """A watermark that is ahead of the clock while rows came behind it, however it came there: with the first batch, in
    small steps, or by a batch of such rows only. The batch that moved it there, of all whose rows hold it there since:
    to run again from a later one would leave out the rows that were dropped until then.

    Where no row is dropped the rows may be about the future, such as bookings.
    """
    mark = last.watermark or 0.0
    if mark - last.ended < MIN_LEAP_SECONDS or (newest.event_time_avg or 0.0) >= (newest.watermark or 0.0):
        return None
    dated = [batch for batch in batches if batch.event_time_max is not None and batch.event_time_max >= mark]
    if not dated:
        return None
    ahead = sum(1 for _ in takewhile(lambda batch: (batch.watermark or 0.0) > batch.ended, reversed(batches)))
    first = batches[-ahead - 1] if ahead < len(batches) else None  # its rows are the watermark of the next
    newest_row = (dated[-1].event_time_max or 0.0) - dated[-1].ended
    return Jump(first, None, newest_row, None, over, None, mark - last.ended)


def _outrun(pair: Sequence[Progress]) -> float | None:
    """Seconds by which the watermark moved further than the clock from one batch to the next."""
    if len(pair) < 2 or pair[0].watermark is None or pair[1].watermark is None:
        return None
    return pair[1].watermark - pair[0].watermark - max(0.0, pair[1].started - pair[0].started)


def _width(batch: Progress) -> float | None:
    """Seconds by which the newest row of a batch is ahead of its average row."""
    if batch.event_time_max is None or batch.event_time_avg is None:
        return None
    return batch.event_time_max - batch.event_time_avg


def _stands_out(read: Progress, later: Sequence[Progress]) -> bool:
    """Whether its newest row is ahead of the clock, or at least of all that was read since.

    Where partitions are read to different times, the foremost goes on from where it is.
    """
    top = read.event_time_max or 0.0
    if top > read.ended + MIN_LEAP_SECONDS:
        return True
    newer = [batch.event_time_max for batch in later if batch.event_time_max is not None]
    return len(newer) >= RECENT_BATCHES and max(newer) < top - MIN_LEAP_SECONDS
