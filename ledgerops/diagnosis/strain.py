"""Whether batches outlast their interval. Two batches prove it when far over, 20 s of batches when just over.

`interval` is the trigger interval in seconds. Without one, `strained` compares with the usual time of the run.
"""

from __future__ import annotations

from itertools import takewhile
from statistics import median

from ledgerops.diagnosis.criteria import (
    FAR_BATCHES,
    FAR_RATIO,
    FAR_SECONDS,
    HOPELESS_RATIO,
    HOPELESS_SECONDS,
    MIN_SHARE_OF_LONGEST,
    MIN_TREND_BATCHES,
    OVER_RATIO,
    TREND_BATCHES,
)
from ledgerops.model.records import Progress
from ledgerops.signals.baseline import OVERRUN_RATIO, RECENT_BATCHES
from ledgerops.signals.memo import once
from ledgerops.signals.query_view import QueryView

SOON_RATIO = 1.33  # batch over interval, proof over three batches
MIN_TREND_SECONDS = 20.0  # that weaker proof must last: a burst of rows is over by then
MIN_OUTLASTED_SHARE = 0.8  # of the batches in this time
TURNS_RATIO = 1.3  # triggers that were due over batches that began
MIN_LONG_SHARE = 0.4  # of the batches; fewer long ones are occasional, which has another cause
MIN_LONG_TIME_SHARE = 0.7  # of the time


@once
def strained(view: QueryView) -> bool:
    """Whether most of the latest four batches outlast the interval by a third, or long ones keep the query from its
    interval although short ones follow. Without an interval: twice the usual time.

    The batch that runs now counts as soon as it has outlasted the interval.
    """
    latest = [batch.duration for batch in view.baseline.steady[-RECENT_BATCHES - 1 :]]
    interval = view.trigger.interval
    if not interval:
        usual = view.baseline.usual
        return (
            len(latest) >= RECENT_BATCHES
            and bool(usual)
            and median(latest) > 2 * median(each.duration for each in usual)
        )
    running = view.run.unfinished_seconds
    if running is not None and running > OVERRUN_RATIO * interval:
        latest = [*latest[-RECENT_BATCHES:], running]
    if _far_over(view, interval):
        return True
    over = sum(each > OVERRUN_RATIO * interval for each in latest)
    if over >= RECENT_BATCHES and median(latest) > SOON_RATIO * interval:
        return True
    return _misses_triggers(view, interval)


def always_over(view: QueryView, interval: float) -> bool:
    """Whether four of the latest five batches outlast the interval by a little, for long enough to be no burst."""
    durations = [batch.duration for batch in view.baseline.steady[-TREND_BATCHES:]]
    if len(durations) < TREND_BATCHES or sum(each > OVER_RATIO * interval for each in durations) < MIN_TREND_BATCHES:
        return False
    lasts = sum(durations) >= min(MIN_TREND_SECONDS, TREND_BATCHES * interval * OVER_RATIO)
    return lasts and durations[-1] >= MIN_SHARE_OF_LONGEST * max(durations)


def outlasted(view: QueryView, interval: float) -> bool:
    """Whether four of five batches of the last 20 s outlast the interval, be it by a little, and do not get shorter."""
    since = view.now - MIN_TREND_SECONDS
    steady = view.baseline.steady
    latest = [batch for batch in steady if batch.ended >= since]
    if len(latest) < RECENT_BATCHES or latest[0].started > since:
        return False
    durations = [batch.duration for batch in latest]
    over = sum(each > OVER_RATIO * interval for each in durations)
    return over >= MIN_OUTLASTED_SHARE * len(latest) and max(durations[-2:]) >= MIN_SHARE_OF_LONGEST * max(durations)


def _misses_triggers(view: QueryView, interval: float) -> bool:
    """Whether long and short batches take turns so that fewer are started than the interval promises.

    Rows that wait while a long batch runs are read by a short one after it: where two queries wait for each other's
    slots, every second batch is long.
    """
    least = max(MIN_TREND_SECONDS, TREND_BATCHES * interval)
    latest: list[Progress] = []
    for batch in reversed(view.baseline.steady):
        latest.append(batch)
        if len(latest) >= MIN_TREND_BATCHES and latest[0].ended - batch.started >= least:
            break
    else:
        return False
    span = latest[0].ended - latest[-1].started
    long = [batch.duration for batch in latest if batch.duration > OVERRUN_RATIO * interval]
    return (
        span >= TURNS_RATIO * len(latest) * interval
        and len(long) >= MIN_LONG_SHARE * len(latest)
        and sum(long) >= MIN_LONG_TIME_SHARE * span
        and max(batch.duration for batch in latest[:2]) >= MIN_SHARE_OF_LONGEST * median(long)
    )


def _far_over(view: QueryView, interval: float) -> bool:
    """Whether batches outlast the interval so far that more proof would take minutes; not while they get shorter."""
    durations = [batch.duration for batch in view.baseline.settled[-5:] if batch.rows > 0]
    running = view.run.unfinished_seconds or 0.0
    if running > FAR_RATIO * interval and running >= MIN_SHARE_OF_LONGEST * max(durations, default=0.0):
        durations.append(running)  # one that has run for less proves nothing yet, neither way
    row = list(takewhile(lambda each: each > FAR_RATIO * interval, reversed(durations)))
    if not row or row[0] < MIN_SHARE_OF_LONGEST * max(row):
        return False
    hopeless = row[0] >= max(HOPELESS_RATIO * interval, HOPELESS_SECONDS)
    return hopeless or (len(row) >= FAR_BATCHES and sum(row) >= FAR_SECONDS)
