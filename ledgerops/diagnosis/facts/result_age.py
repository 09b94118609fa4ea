"""How old the results of a query are, by what waits, by its batches, by its rows and by its watermark."""

from collections.abc import Sequence
from itertools import pairwise
from math import inf
from statistics import median
from typing import NamedTuple

from ledgerops.diagnosis.facts import growth
from ledgerops.diagnosis.facts.dropped import AGGREGATING
from ledgerops.diagnosis.facts.stall import MAX_LIVE_AGE_SECONDS
from ledgerops.diagnosis.facts.unread import MIN_PEAK_SHARE
from ledgerops.diagnosis.limits import MOSTLY
from ledgerops.metrics.latency import EVENT_BOUNDS, event_latencies
from ledgerops.metrics.pressure import LAG
from ledgerops.model.head_table import offsets_read_at
from ledgerops.model.history import backlog
from ledgerops.model.observed_metrics import OBSERVATION
from ledgerops.model.records import Progress
from ledgerops.signals.baseline import RECENT_BATCHES
from ledgerops.signals.lag import lefts
from ledgerops.signals.query_view import QueryView
from ledgerops.signals.trigger import ALIGNMENT_SECONDS

NO_ROWS = "No new data"  # Spark's message of a batch that only cleans up state
HELD_BACK = "; rows of now arrive, but the watermark is that of the input with the oldest rows"


class Age(NamedTuple):
    """One measure of how old results are."""

    what: str  # name of the evidence
    seconds: float
    words: str  # of the summary, before the seconds
    why: str = ""  # at its end


def too_old(view: QueryView, limit: float) -> Sequence[Age]:
    """The ages above the limit, in seconds."""
    ages = (_waiting(view), _delay(view), _observed(view, limit), _watermark(view, limit))
    return [age for age in ages if age is not None and age.seconds > limit]


def catches_up(view: QueryView, limit: float) -> bool:
    """Whether the backlog shrinks, and either piled up before the run began or will be gone within the objective: it is
    below its peak, or lower than ever. What the first batch leaves did pile up before."""
    sizes = [left for _, left in lefts(view.batches)]
    most = max(sizes, default=0)
    falls = sizes[-1] < max(MIN_PEAK_SHARE * most, min(sizes[:-1], default=inf)) if sizes else False
    if most == 0 or not falls or growth.growth(view) is not None:
        return False
    return growth.piled_up_before(sizes) or sizes[-1] <= limit * view.lag.falls_by


def _waiting(view: QueryView) -> Age | None:
    """The age of the oldest row left in the source, if each of the latest batches left rows there."""
    lag = view.lag.seconds
    if lag is None or any(not backlog(batch) for batch in view.batches[-RECENT_BATCHES:]):
        return None
    return Age(LAG.name, lag, "the oldest unread row has waited")


def _delay(view: QueryView) -> Age | None:
    """Age of the oldest row of the running batch; else the least that it was at the end of the newest two batches."""
    newest = view.baseline.steady[-RECENT_BATCHES:]
    running, interval = view.history.running, view.interval
    if running is not None and newest and newest[-1].rows and not running.message.startswith(NO_ROWS):
        since = _since(newest[-1], running.since, interval)
        return Age("result_delay_seconds", view.now - since, "results are late by")
    if len(newest) < RECENT_BATCHES or any(batch.rows == 0 for batch in newest):
        return None
    delay = min(later.ended - _since(earlier, later.started, interval) for earlier, later in pairwise(newest))
    return Age("result_delay_seconds", delay, "results are late by")


def _since(before: Progress, started: float, interval: float) -> float:
    """Since when the oldest row of a batch may have waited: if the batch started on time, since the batch before it
    asked for its offsets; after a pause without rows, since it would have been due."""
    at_its_turn = started <= before.ended + interval + ALIGNMENT_SECONDS
    asked = offsets_read_at(before)
    return asked if at_its_turn else max(asked, started - interval)


def _observed(view: QueryView, limit: float) -> Age | None:
    """The median age of the rows of the latest batches, if rows were recent once in this run: else it is a replay."""
    if not any(name.startswith(OBSERVATION) for name in view.batches[-1].observed):
        return None
    newest = [age for batch in view.baseline.steady[-RECENT_BATCHES:] if (age := median_age(batch)) is not None]
    if len(newest) < RECENT_BATCHES or min(newest) <= limit:
        return None
    earlier = [age for batch in view.batches[:-RECENT_BATCHES] if (age := median_age(batch)) is not None]
    if not earlier or min(earlier) > MOSTLY * limit:
        return None
    return Age("event_latency_seconds", median(newest), "half of the rows have an event time older than")


def median_age(batch: Progress) -> float | None:
    """Median seconds from event time to the batch, of all rows that `instrument` observed. A few very late rows would
    move a mean without making the other rows late."""
    buckets = [0] * (len(EVENT_BOUNDS) + 1)
    for counts, _ in event_latencies(batch):
        buckets = [held + more for held, more in zip(buckets, counts, strict=True)]
    half = sum(buckets) / 2
    below, floor = 0, 0.0
    for bound, count in zip(EVENT_BOUNDS, buckets, strict=False):
        if half > 0 and below + count >= half:
            return floor + (bound - floor) * (half - below) / count
        below, floor = below + count, bound
    return floor if half > 0 else None


def _watermark(view: QueryView, limit: float) -> Age | None:
    """How far the watermark is behind, less the allowed lateness; only if it was close once in this run, or holds back
    rows of about now: those of a replay are all old."""
    delay = view.plan.lateness
    newest = view.baseline.steady[-RECENT_BATCHES:]
    if delay is None or len(newest) < RECENT_BATCHES or any(b.watermark is None or b.rows == 0 for b in newest):
        return None
    behind = [_behind(batch, delay) for batch in newest]
    if min(behind) <= limit:
        return None
    moves = newest[0].watermark != newest[-1].watermark  # else an input is silent
    # inner joins, duplicates and updates do not wait until the watermark has passed a group
    operators = view.operators if view.plan.output_mode == "append" else ()
    waits = any(each.name in AGGREGATING for each in operators)
    held = moves and waits and all(_holds(*pair, delay + limit) for pair in pairwise(newest))
    earlier = [_behind(batch, delay) for batch in view.batches[:-RECENT_BATCHES] if batch.watermark is not None]
    if not held and (not earlier or min(earlier) > MOSTLY * limit):
        return None
    return Age("watermark_lag_seconds", behind[-1], "the watermark delays results by", HELD_BACK if held else "")


def _behind(batch: Progress, delay: float) -> float:
    return batch.ended - (batch.watermark or 0.0) - delay


def _holds(before: Progress, batch: Progress, seconds: float) -> bool:
    """Whether the watermark is so far behind the newest row of the batch before, one of about now: it would have passed
    that, less the allowed lateness, if no other input had a lower one."""
    at = before.event_time_max
    live = at is not None and abs(before.ended - at) <= MAX_LIVE_AGE_SECONDS
    return live and (at or 0.0) - (batch.watermark or 0.0) > seconds
