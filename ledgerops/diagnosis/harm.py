"""Whether a query is harmed: it cannot keep up, misses its interval or the objective, or its long batches never pause.

This needs neither a past nor a known trigger. Without harm a cause is at most worth knowing, never a warning.
"""

from __future__ import annotations

from itertools import pairwise
from statistics import median
from typing import Literal, NamedTuple

from ledgerops.diagnosis import overload, strain
from ledgerops.diagnosis.criteria import MIN_SHARE_OF_LONGEST, OVER_RATIO, TREND_BATCHES, VERY_LONG_SECONDS
from ledgerops.signals.baseline import RECENT_BATCHES
from ledgerops.signals.memo import once
from ledgerops.signals.query_view import QueryView
from ledgerops.signals.trigger import SATURATED_RATIO

LONG_SECONDS = 5.0  # each of two batches after the first: more proof would take minutes
MIN_LONG_SECONDS = 1.0  # of a batch, from which it is examined although no harm is known


class Harm(NamedTuple):
    """How a query is harmed. `ratio` is batch time over the interval, or over the time in which its rows arrived."""

    kind: Literal["behind", "overrun", "late"]
    ratio: float
    since: float


@once
def harm(view: QueryView) -> Harm | None:
    """The first harm that is found; None when nothing shows any."""
    if view.run.is_idle and view.run.running_seconds is None:
        return None
    grown = overload.growth(view)
    if grown is not None:
        load = overload.load(view)
        ratio = load.arrival / load.processed if load is not None and load.processed > 0 else OVER_RATIO
        return Harm("behind", max(1.0, ratio), grown.since)
    return _overrun(view) or _late(view)


def _overrun(view: QueryView) -> Harm | None:
    interval = view.trigger.interval
    if not interval or not view.baseline.settled:
        return None
    if not strain.strained(view) and not strain.always_over(view, interval):
        return None
    newest = view.baseline.steady[-TREND_BATCHES:] or view.baseline.settled[-1:]
    return Harm("overrun", max(1.0, median(each.duration for each in newest) / interval), newest[0].started)


def _late(view: QueryView) -> Harm | None:
    """Batches so long that results are older than the objective when they come: a batch reads what came while the one
    before it ran, so its oldest result is as old as both together.

    Of such long batches two are enough, the one that runs now included, unless they get shorter.
    """
    if view.trigger.interval or not view.trigger.known or view.plan.trigger in overload.SELF_ENDING_TRIGGERS:
        return None
    latest = view.baseline.recent
    if len(latest) == RECENT_BATCHES:
        age = 2 * median(batch.duration for batch in latest)
        return Harm("late", age / view.freshness, latest[0].started) if age > view.freshness else None
    for before, newest in list(pairwise(_with_rows(view)))[-2:]:
        age = before + newest
        if min(before, newest) > VERY_LONG_SECONDS and age > view.freshness and newest >= MIN_SHARE_OF_LONGEST * before:
            return Harm("late", age / view.freshness, view.batches[0].started)
    return None


def _with_rows(view: QueryView) -> list[float]:
    """Seconds of the run's batches with rows, and of the one that runs now as long as it has run."""
    seconds = [batch.duration for batch in view.batches if batch.rows > 0]
    running = view.run.unfinished_seconds
    return seconds if running is None else [*seconds, running]


@once
def examined(view: QueryView) -> bool:
    """Whether it is worth saying where the time goes: the query is harmed, or its batches are long and never pause."""
    if harm(view) is not None or strain.strained(view):
        return True
    if view.run.is_idle or view.plan.trigger in overload.SELF_ENDING_TRIGGERS:
        return False
    latest = view.baseline.recent
    if len(latest) < RECENT_BATCHES:
        settled, ended = (
            [batch.duration for batch in some if batch.rows > 0] for some in (view.baseline.settled, view.batches)
        )
        return (len(settled) >= 2 and min(settled) > LONG_SECONDS) or min(ended, default=0.0) > VERY_LONG_SECONDS
    seconds = median(batch.duration for batch in latest)
    return (view.trigger.busy_ratio or 0.0) >= SATURATED_RATIO and seconds > MIN_LONG_SECONDS
