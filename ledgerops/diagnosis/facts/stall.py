"""Times in which rows arrived and the watermark, or the event time that it follows, did not advance."""

from collections.abc import Sequence
from itertools import takewhile
from typing import NamedTuple

from ledgerops.diagnosis.facts.misread_time import Misread, misread
from ledgerops.diagnosis.facts.watermark_ahead import MIN_LEAP_SECONDS, jump
from ledgerops.diagnosis.limits import CLEAR_TIMES
from ledgerops.model.records import Progress
from ledgerops.signals.baseline import RECENT_BATCHES
from ledgerops.signals.memo import once
from ledgerops.signals.query_view import QueryView

MIN_STILL_SECONDS = 8.0  # an input may be silent for a batch or two
MIN_STALLED_BATCHES = 4  # with rows, after the first that had this watermark: that takes four intervals, too
NO_WATERMARK_SECONDS = 15.0  # after the first rows: Spark sets the first watermark one batch after them
MAX_LIVE_AGE_SECONDS = 300.0  # newest event times that are younger are live, whatever pace a backlog gave them


class Stall(NamedTuple):
    """A time in which rows arrived and the watermark did not advance."""

    batches: Sequence[Progress]  # with rows, since the watermark stopped
    seconds: float
    rows: int  # that arrived
    usual: float  # longest seconds without an advance before
    limit: float  # on the seconds
    ahead: float | None  # of the newest row before what the watermark would have to be
    young: bool = False  # it has moved too rarely to tell what is usual
    never: bool = False  # the run never had one: `ahead` is how far the event time of its rows has come


class StandingClock(NamedTuple):
    """A newest event time that does not move, or is none, while rows arrive."""

    batches: Sequence[Progress]  # with rows, since it stands
    seconds: float
    rows: int
    usual: float
    limit: float  # on the seconds
    older: bool  # the rows have other times, all before the newest
    misread: Misread | None  # what the time in the rows probably is


def limit(usual: float, least: float = MIN_STILL_SECONDS) -> float:
    """Seconds from which a time without an advance is too long."""
    return max(least, CLEAR_TIMES * usual)


@once
def stall(view: QueryView) -> Stall | None:
    """The time without an advance of the watermark, if it is longer than ever before and rows arrived throughout."""
    last, known = view.last, view.history.watermark
    if last is None or last.rows == 0 or view.run.is_idle:
        return None
    if known is None:
        return _never_began(view, last)
    seconds, young = last.started - known.moved_at, known.moves < RECENT_BATCHES
    usual = max(known.longest, view.history.watermark_stood) if young else known.longest
    most = limit(usual, view.freshness if young else MIN_STILL_SECONDS)
    if seconds < most:
        return None
    standing = _from(view, known.moved_at)
    if len(_with_rows(standing)) < MIN_STALLED_BATCHES:
        return None
    delay = view.plan.lateness or 0.0
    ahead = last.event_time_max - known.value - delay if last.event_time_max is not None else None
    if ahead is not None and ahead < MIN_STILL_SECONDS:
        return None  # the event time of the rows does not advance: see standing_clock
    rows = sum(batch.rows for batch in standing[1:])
    return Stall(_with_rows(standing), seconds, rows, usual, most, ahead, young)


@once
def standing_clock(view: QueryView) -> StandingClock | None:
    """The time in which rows arrived and their newest event time, which had kept pace with the clock, did not move."""
    last, known = view.last, view.history.newest_event
    if last is None or known is None or last.rows == 0 or view.run.is_idle:
        return None
    near = abs(known.moved_at - known.value) <= MAX_LIVE_AGE_SECONDS
    # as fast as the clock; a replay has another pace, and may well stay at one time
    paced = known.pace is not None and 1 / CLEAR_TIMES <= known.pace <= CLEAR_TIMES
    if _far_behind(known.value, last) is not None:  # never a time: it moves a thousand times slower than the clock
        since, usual, least = known.began, 0.0, MIN_STILL_SECONDS
    elif known.moves >= RECENT_BATCHES and (near or paced):
        since, usual, least = known.moved_at, known.longest, MIN_LEAP_SECONDS
    else:
        return None
    seconds, most = last.started - since, limit(usual, least)
    if seconds < most or jump(view) is not None:  # one row is ahead of all others, which may well move
        return None
    standing = _from(view, since)
    with_rows = _with_rows(standing)
    if len(with_rows) < MIN_STALLED_BATCHES:
        return None
    rows = sum(batch.rows for batch in standing[1:])
    older = any(batch.event_time_max != known.value for batch in with_rows)
    return StandingClock(with_rows, seconds, rows, usual, most, older, _far_behind(last.event_time_max, last))


def _far_behind(at: float | None, last: Progress) -> Misread | None:
    found = misread(at, last.ended)
    return found if found is not None and not found.ahead else None


def _from(view: QueryView, at: float) -> Sequence[Progress]:
    """The remembered batches from the one that began at an instant on."""
    return list(takewhile(lambda batch: batch.started >= at, reversed(view.batches)))[::-1]


def _with_rows(batches: Sequence[Progress]) -> Sequence[Progress]:
    return [batch for batch in batches if batch.rows > 0]


def _never_began(view: QueryView, last: Progress) -> Stall | None:
    """Rows with event times arrive, and no batch had a watermark: Spark sets it by the batch after the first rows."""
    known = view.history.newest_event
    timed = [batch for batch in view.batches if batch.rows > 0 and batch.event_time_max is not None]
    if known is None or len(timed) <= MIN_STALLED_BATCHES or last.event_time_max is None:
        return None
    if last.started - timed[0].started < NO_WATERMARK_SECONDS:
        return None
    rows = sum(batch.rows for batch in view.batches[1:])
    since = last.started - view.batches[0].started
    come = last.event_time_max - (timed[0].event_time_max or 0.0)
    return Stall(timed, since, rows, 0.0, limit(0.0), come, never=True)
