"""Is a query under strain, since when, and compared with what: the ground that several rules stand on.

`duration` is a batch's, `interval` the trigger interval, both in seconds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from itertools import pairwise
from math import prod
from statistics import median
from typing import NamedTuple, TypeVar

from ledgerops.model import head_table
from ledgerops.model.history import backlog
from ledgerops.model.records import Progress
from ledgerops.signals import arithmetic
from ledgerops.signals.query_view import View

Answer = TypeVar("Answer")

OVER = 1.1  # a batch that outlasts its trigger interval by less is a matter of alignment
RECENT = 3  # batches: one slow batch is noise, three are how it is now
PAST = 5  # healthy batches needed before 'slower than usual' means anything
GROWING = 1.2  # a batch this much longer than the time in which its rows came: more came meanwhile than it read


def once(judge: Callable[[View], Answer]) -> Callable[[View], Answer]:
    """Asks a function of a view once: several rules want the same answer."""

    @wraps(judge)
    def ask(view: View) -> Answer:
        if judge not in view.answers:
            view.answers[judge] = judge(view)
        answer: Answer = view.answers[judge]
        return answer

    return ask


def overran(batch: Progress, interval: float | None) -> bool:
    """Whether the batch outlasted a trigger interval that is known and not zero."""
    return bool(interval) and batch.duration > OVER * (interval or 0.0)


@once
def strained(view: View) -> bool:
    """Whether most of the latest four batches outlast the interval by a third; without one, twice the usual time.

    The batch that runs now counts as soon as it has outlasted the interval.
    """
    latest = [batch.duration for batch in view.steady[-RECENT - 1 :]]
    interval = view.trigger_interval
    if not interval:
        usual = past(view)
        return len(latest) >= RECENT and bool(usual) and median(latest) > 2 * median(each.duration for each in usual)
    running = view.running_seconds
    if running is not None and running > OVER * interval:
        latest = [*latest[-RECENT:], running]
    over = sum(each > OVER * interval for each in latest)
    return over >= RECENT and median(latest) > 1.33 * interval


@once
def past(view: View) -> Sequence[Progress]:
    """The batches of the run that serve as 'usual': not the latest few, none that overran; empty if too few."""
    older = [batch for batch in view.steady[: -RECENT - 1] if not overran(batch, view.trigger_interval)]
    with_rows = [batch for batch in older if batch.rows > 0]
    return with_rows if len(with_rows) >= PAST else []


class Slowdown(NamedTuple):
    """The latest batches against the usual ones. `factor` allows for more rows: they may take longer in proportion."""

    factor: float
    seconds: float
    usual_seconds: float
    rows: float
    usual_rows: float


@once
def slowdown(view: View) -> Slowdown | None:
    """None without a past to compare with."""
    usual, latest = past(view), [batch for batch in view.steady[-RECENT:] if batch.rows > 0]
    if not usual or not latest:
        return None
    usual_seconds = median(batch.duration for batch in usual)
    usual_rows = median(batch.rows for batch in usual)
    rows, seconds = median(batch.rows for batch in latest), median(batch.duration for batch in latest)
    allowed = usual_seconds * max(1.0, rows / usual_rows)
    return Slowdown(seconds / allowed, seconds, usual_seconds, rows, usual_rows) if allowed > 0 else None


class Growth(NamedTuple):
    """How a query falls behind. `form` is "backlog" where rows are left in the source, "batches" where each batch
    takes all there is and so gets longer and longer. `lag` is how late results are, in seconds."""

    form: str
    since: float
    batches: int
    first: float  # offsets, or seconds of batch duration
    last: float
    lag: float


LAG = 10.0  # seconds; a burst of 1.5 times the capacity for 20 s stays below it
LONG_LAG = 15.0  # where only batch times tell: a machine's hiccup also makes a few batches longer
ENDS_BY_ITSELF = ("available_now", "once")  # such a run works off a backlog that does not grow
SERIES = 12  # batches looked at for growth
MIN_SERIES = 4
RISING = 0.75  # share of the steps that must rise: a single quick batch does not end a trend
LEFT_OVER = 0.1  # share of what came in meanwhile that must have been left; less is noise on a large backlog
STILL = 0.95  # below this share of its peak the backlog is being worked off
CHAIN = 3  # longer batches in a row, the one that runs now included; a pause of the machine makes one or two
CRAWLS = 0.5  # of the rows a second of the batch before
CHAIN_SECONDS = 20.0  # and they must add up to this
ALONE_SECONDS = 15.0  # one is enough if it is this long, has twice the rows, and took half as long again as they came


@once
def growth(view: View) -> Growth | None:
    """Whether the query falls behind, in either form; None when it does not, or when there is too little to tell."""
    if view.history.idle_since is not None or view.plan.trigger in ENDS_BY_ITSELF:
        return None
    return _growing_backlog(view) or _growing_batches(view)


def _growing_backlog(view: View) -> Growth | None:
    """The backlog has risen in most batches since its lowest point and is at its highest now."""
    series = [(batch, left) for batch in view.steady[-SERIES:] if (left := backlog(batch)) is not None]
    if len(series) < MIN_SERIES:
        return None
    lefts = [left for _, left in series]
    lowest = len(lefts) - 1 - lefts[::-1].index(min(lefts))
    rising = lefts[lowest:]
    steps = [later > earlier for earlier, later in pairwise(rising)]
    if len(rising) < MIN_SERIES or sum(steps) < RISING * len(steps):
        return None
    came_in = _head(series[-1][0]) - _head(series[lowest][0])
    if rising[-1] < STILL * max(rising) or rising[-1] - rising[0] < LEFT_OVER * came_in:
        return None
    lag = view.lag_seconds
    if lag is None or lag < max(LAG, 2 * (view.trigger_interval or 0.0)):
        return None
    return Growth("backlog", series[lowest][0].started, len(rising), rising[0], rising[-1], lag)


def _head(batch: Progress) -> int:
    return sum(head for source in batch.sources for head in source.latest.values())


def _growing_batches(view: View) -> Growth | None:
    """Without a limit on its batches a query reads all there is: overload shows as batches that get longer.

    The batch that runs now counts with the time it has run, as soon as that is long enough to say something; until
    then what the batches before it proved still holds.
    """
    interval = view.trigger_interval or 0.0
    times = [Turn(batch.started, batch.duration, head_table.looked_at(batch)) for batch in view.settled[-SERIES:]]
    if not times or view.batches[-1].rows == 0:
        return None
    running = view.running_seconds
    if running is not None:
        began = max(view.now - running, view.batches[-1].ended)
        if running >= max(interval, began - times[-1].began):  # and it still runs
            grown = _chain(view, [*times, Turn(began, running, None)], unfinished=True)
            if grown is not None:
                return grown
    return _chain(view, times)


class Turn(NamedTuple):
    """When a batch began, how long it took, and when it asked for the heads; None for the one at work."""

    began: float
    seconds: float
    asked: float | None

    def came_in(self, before: Turn) -> float:
        """Seconds in which its rows came."""
        if self.asked is None or before.asked is None:
            return self.began - before.began
        return self.asked - before.asked


def _chain(view: View, times: Sequence[Turn], unfinished: bool = False) -> Growth | None:
    """The newest batches of which every one took longer than its rows took to come."""
    interval = view.trigger_interval or 0.0
    ratios: list[float] = []
    for before, turn in zip(reversed(times[:-1]), reversed(times[1:]), strict=True):
        came_in = max(interval, turn.came_in(before))
        if came_in <= 0 or turn.seconds < (1.0 if unfinished and not ratios else GROWING) * came_in:
            break
        ratios.append(turn.seconds / came_in)
    if not ratios:
        return None
    chain = times[-len(ratios) :]
    patience = 1.0 if interval else 2.0  # without an interval nobody was promised a rhythm
    several = (
        len(chain) >= CHAIN and prod(ratios) >= 2 and sum(each.seconds for each in chain) >= CHAIN_SECONDS * patience
    )
    alone = ratios[0] >= 1.5 and chain[-1].seconds >= ALONE_SECONDS * patience and _swelled(view, chain[-1].began)
    before = times[-2]  # the oldest row of a batch came when the one before it had asked for its offsets
    lag = max(view.now, view.batches[-1].ended) - (before.began if before.asked is None else before.asked)
    if not (several or alone) or lag < LONG_LAG * patience:
        return None
    return Growth("batches", chain[0].began, len(chain), chain[0].seconds, chain[-1].seconds, lag)


def _swelled(view: View, began: float) -> bool:
    """Whether the newest batch is the one that began then, had twice the rows of the one before it, and did not crawl.

    A batch that is merely held up (a busy machine, a pause) does fewer rows a second than the others.
    """
    if len(view.batches) < 2 or view.batches[-1].started != began:
        return False
    before, newest = view.batches[-2:]
    crawls = newest.rows * before.duration < CRAWLS * before.rows * newest.duration
    return newest.rows >= 2 * max(1, before.rows) and not crawls


class Load(NamedTuple):
    """Rows a second that arrive and that are worked off while the query can do no more."""

    arrival: float
    worked_off: float


def load(view: View, count: int = RECENT) -> Load | None:
    """Over the latest batches. A batch that waits for its trigger works off its rows in one interval."""
    latest = view.batches[-count:]
    if len(latest) < 2:
        return None
    interval = view.trigger_interval or 0.0
    spent = sum(max(batch.duration, interval) for batch in latest)
    span = head_table.looked_at(latest[-1]) - head_table.looked_at(latest[0])
    if spent <= 0 or span <= 0:
        return None
    arrived, known = 0.0, False
    heads = {source.name: source.latest for source in latest[0].sources}
    for source in latest[-1].sources:
        if source.latest and heads.get(source.name):
            factor = view.rows_per_offset.get(source.name, 1.0)
            arrived += arithmetic.growth(heads[source.name], source.latest) * factor
            known = True
    return Load(arrived / span, sum(batch.rows for batch in latest) / spent) if known else None
