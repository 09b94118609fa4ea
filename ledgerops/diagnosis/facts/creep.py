"""A load that rises steadily towards what the query can process, by the trend of an hour."""

from bisect import bisect_left
from collections.abc import Sequence
from itertools import pairwise
from math import sqrt
from typing import NamedTuple

from ledgerops.diagnosis.limits import FAR_TIMES
from ledgerops.model.head_table import offsets_read_at
from ledgerops.model.history import TREND_SECONDS, TrendPoint
from ledgerops.model.records import LONG_RUNNING, Progress
from ledgerops.signals.baseline import RECENT_BATCHES, WARM_UP_SECONDS
from ledgerops.signals.memo import once
from ledgerops.signals.query_view import QueryView
from ledgerops.signals.rate_cap import cap_of

WINDOWS = (5, 30, 180)  # stretches of TREND_SECONDS
WINDOW_PARTS = 5  # parts of a window, each of which must show the rise
MIN_RISE_SHARE = 0.15  # of what rises over the shortest window; the noise of an arrival is a few percent
MIN_STEP_SHARE, MAX_STEP_SHARE = 0.08, 0.45  # of the whole rise in each step between parts: more in one step is a step
MIN_FULLNESS = 0.88  # below it a third of the rise is still to come
MAX_FORECAST_SECONDS = FAR_TIMES * WINDOWS[1] * TREND_SECONDS  # a forecast from five minutes does not reach further
BY_INTERVAL = "the trigger interval"


class Creep(NamedTuple):
    """A steady rise of the load towards what the query can process. Rates are rows a second."""

    fullness: float  # share of the interval or of the cap that a batch uses
    per_second: float  # by which the fullness rises
    arrival: float
    growth: float  # of the arrival over the window, as a share
    seconds: float  # until the query is full; 0 when it is
    window: float  # seconds
    by: str  # what becomes full
    began: float


@once
def creep(view: QueryView) -> Creep | None:
    """The rise over the shortest window that shows one."""
    newest = view.batches[-3:]
    if view.plan.trigger in LONG_RUNNING:
        return None  # its batches fill the interval whatever there is to do
    if not newest or not view.interval or max(_full(view, b.rows, b.duration) for b in newest) < MIN_FULLNESS:
        return None
    since = (view.history.started_at or view.batches[0].started) + WARM_UP_SECONDS + TREND_SECONDS
    points = [point for point in view.history.trend if point.at - TREND_SECONDS >= since]
    if points and points[-1].batches < RECENT_BATCHES:
        points.pop()
    for size in WINDOWS:
        if len(points) < size + 1:
            return None
        found = _risen(view, points[-size - 1 :], newest[-1])
        if found is not None:
            return found
    return None


def _risen(view: QueryView, points: Sequence[TrendPoint], last: Progress) -> Creep | None:
    """Whether arrival and fullness rose over each part of the points, the first of which is only their beginning."""
    size = (len(points) - 1) // WINDOW_PARTS
    parts = [points[n * size + 1 : (n + 1) * size + 1] for n in range(WINDOW_PARTS)]
    edges = [points[n * size].at for n in range(WINDOW_PARTS + 1)]
    if any(not 0 < b - a <= 2 * size * TREND_SECONDS for a, b in pairwise(edges)):
        return None  # with a pause, or clocks that went back
    sampled_at = [*edges[:-1], min(edges[-1], offsets_read_at(last))]  # the newest part may not be over
    if sampled_at[-1] - sampled_at[-2] < MAX_STEP_SHARE * size * TREND_SECONDS:
        return None
    known = [(at, _heads(view, at)) for at in sampled_at]
    arrivals = [(after - before) / (until - since) for (since, before), (until, after) in pairwise(known)]
    if arrivals[0] <= 0 or not rises_steadily(arrivals):
        return None
    fulls = []
    for part in parts:
        batches = sum(point.batches for point in part)
        fulls.append(_full(view, sum(p.rows for p in part) / batches, sum(p.batch_seconds for p in part) / batches))
    seconds = _until_full(fulls, edges[-1] - edges[-2]) if fulls[-1] >= MIN_FULLNESS else None
    if seconds is None or seconds > MAX_FORECAST_SECONDS:
        return None
    window, cap, newest = edges[-1] - edges[0], _cap(view), points[-1]
    by_cap = cap is not None and newest.rows / cap[1] > newest.batch_seconds / view.interval
    by = "the rows allowed per batch" if by_cap else BY_INTERVAL
    per_second = (fulls[-1] - fulls[0]) / (edges[-1] - edges[1])
    return Creep(fulls[-1], per_second, arrivals[-1], arrivals[-1] / arrivals[0] - 1, seconds, window, by, edges[0])


def rises_steadily(levels: Sequence[float]) -> bool:
    """Whether these levels, one for each part of a window, rise by enough, in every step and in none by most of it."""
    rise = levels[-1] - levels[0]
    if rise < MIN_RISE_SHARE * levels[0]:
        return False
    return all(MIN_STEP_SHARE * rise <= later - earlier <= MAX_STEP_SHARE * rise for earlier, later in pairwise(levels))


def _until_full(fulls: Sequence[float], apart: float) -> float | None:
    """Seconds from the end of the newest part, which was so full in its middle, until 1 is reached; None when the rise
    levels off below it."""
    if fulls[-1] >= 1:
        return 0.0
    step = fulls[-1] - fulls[-2]
    bend = min(0.0, step - (fulls[-2] - fulls[-3]))  # a rise that gets faster is taken as straight
    step, missing = step + bend / 2, 1 - fulls[-1]
    inner = step * step + 2 * bend * missing  # missing = step * n + bend / 2 * n^2
    return max(0.0, (2 * missing / (step + sqrt(inner)) - 0.5) * apart) if inner >= 0 and step > 0 else None


def _heads(view: QueryView, at: float) -> float:
    """The sum of all head offsets at an instant, by what was seen of them before and after it."""
    total = 0.0
    for offsets, times in view.history.head_times.values():
        after = min(bisect_left(times, at), len(times) - 1)
        before = max(0, after - 1)
        span = times[after] - times[before]
        part = min(1.0, max(0.0, (at - times[before]) / span)) if span > 0 else 0.0
        total += offsets[before] + part * (offsets[after] - offsets[before])
    return total


def _full(view: QueryView, rows: float, seconds: float) -> float:
    """The share of what a batch can hold that is used: of its interval, or of the rows that its source allows."""
    cap = _cap(view)
    return max(seconds / view.interval, rows / cap[1] if cap else 0.0)


def _cap(view: QueryView) -> tuple[str, int] | None:
    """The cap on the rows of a batch; of several sources each has its own, and rows are known of all together."""
    return cap_of(view) if len(view.sources) == 1 else None
