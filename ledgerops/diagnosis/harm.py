"""Whether, how and since when a query is harmed: what it owes.

A query with a trigger interval owes time: the seconds by which its batches were longer than the triggers that fell into
them. A query that makes it up again owes nothing, nor does a batch that works off a backlog. One without an interval
owes results: it falls behind (`facts.growth`), or its batches are so long that results are older than the objective.
One that ends by itself owes the time by which a run outlasts the period of its scheduler (`facts.former_runs`).
This needs no healthy past. Without harm a cause is at most worth knowing, never a warning.
"""

from bisect import bisect_left
from collections.abc import Sequence
from itertools import pairwise
from statistics import median
from typing import Literal, NamedTuple

from ledgerops.diagnosis.facts import growth
from ledgerops.diagnosis.facts.former_runs import late_run
from ledgerops.diagnosis.facts.unwatched import stood_still
from ledgerops.diagnosis.limits import (
    CLEAR_TIMES,
    LONG_SECONDS,
    NEARLY_ALL,
    NOISE_SHARE,
    SHOWN_BATCHES,
    VERY_LONG_SECONDS,
)
from ledgerops.model.history import backlog
from ledgerops.model.records import LONG_RUNNING, Progress
from ledgerops.signals.baseline import OVER_RATIO, RECENT_BATCHES
from ledgerops.signals.lag import lefts
from ledgerops.signals.memo import once
from ledgerops.signals.query_view import QueryView
from ledgerops.signals.trigger import SATURATED_RATIO

WINDOW_SECONDS = 120.0  # newest batches that are judged
MIN_SHARE_OF_MOST = 0.7  # of the largest share owed; what was owed before is no part of it
MAX_QUIET_SPACINGS = 1.5  # times the usual number of batches between two late ones: then it is over
PROVEN_LONG_SECONDS = 5.0  # each of two batches after the first: more proof would take minutes
MIN_LATE_SHARE = 0.4  # of the batches; fewer are occasional, and the typical batch is another one


class Proof(NamedTuple):
    """What it takes to be sure: so many late batches, over batches of so many seconds, that owe this share of them."""

    late: int
    owed: float
    seconds: float
    steady: bool = True  # only batches after the warm-up count


PROOFS = (
    Proof(4, 0.05, 20.0),  # each a little: a burst of rows is over by then
    Proof(3, 0.25, 0.0),  # a third over the interval
    Proof(2, 0.67, 22.0, steady=False),  # three times the interval; two cold writes of 10 s at the start stay below it
    Proof(1, 0.9, 20.0, steady=False),  # ten times: a single batch proves it
)


class Harm(NamedTuple):
    """How a query is harmed. `ratio` is batch time over the interval, or over the time in which its rows arrived."""

    kind: Literal["behind", "overrun", "late"]
    ratio: float
    since: float


class Turn(NamedTuple):
    """One batch, or the one that runs now (`batch` is None then) as long as it has run, as the trigger sees it."""

    batch: Progress | None
    started: float
    seconds: float
    taken: float  # seconds until the next could begin: the interval, or the batch where it is longer
    steady: bool


class Owed(NamedTuple):
    """The newest batches from a late one on, and what they owe."""

    turns: Sequence[Turn]
    late: Sequence[Turn]
    seconds: float  # by which they were longer than the triggers that fell into them
    span: float  # seconds that they took

    @property
    def share(self) -> float:
        """Of the time, 0 to 1."""
        return self.seconds / self.span if self.span > 0 else 0.0

    @property
    def since(self) -> float:
        """When the first late one began, in epoch seconds."""
        return self.turns[0].started


@once
def harm(view: QueryView) -> Harm | None:
    """The first harm that is found; None when nothing shows any."""
    if view.run.rests:
        return None
    grown = growth.growth(view)
    if grown is not None:
        load = growth.load(view)
        ratio = (load.ratio if load is not None else None) or OVER_RATIO
        return Harm("behind", max(1.0, ratio), grown.since)
    time = owed(view)
    if time is not None:
        typical = median(turn.seconds for turn in time.late)
        return Harm("overrun", max(1.0, typical / (view.trigger.interval or typical)), time.since)
    if (run := late_run(view)) is not None:
        return Harm("overrun", run.seconds / run.period, run.began)
    return _late_results(view)


@once
def owed(view: QueryView) -> Owed | None:
    """What the newest batches owe to their interval, where one of PROOFS holds; None when none does."""
    return _longest(view, PROOFS)


def owes_for(view: QueryView, *proofs: Proof) -> Owed | None:
    """The same by other proofs, over what is owed now."""
    now = owed(view)
    found = _longest(view, proofs)
    return found if now is not None and found is not None and found.share >= MIN_SHARE_OF_MOST * now.share else None


def _longest(view: QueryView, proofs: Sequence[Proof]) -> Owed | None:
    proven = [
        found
        for found in _candidates(view)
        if any(
            len(found.late) >= proof.late and found.share >= proof.owed and found.span >= proof.seconds
            for proof in proofs
            if found.turns[0].steady or not proof.steady
        )
    ]
    most = max((found.share for found in proven), default=0.0)
    return next((found for found in proven if found.share >= MIN_SHARE_OF_MOST * most), None)


@once
def _candidates(view: QueryView) -> Sequence[Owed]:
    """The newest batches from each late one on, the longest such stretch first."""
    turns = _turns(view)
    interval = view.interval
    places = [place for place, turn in enumerate(turns) if turn.seconds > OVER_RATIO * interval]
    if not places or _is_over(turns, places, [batch.duration for batch in view.batches]):
        return []
    found = []
    for first in places:
        stretch = turns[first:]
        span = sum(turn.taken for turn in stretch)
        late = [turns[place] for place in places if place >= first]
        found.append(Owed(stretch, late, max(0.0, span - interval * len(stretch)), span))
    return found


def _turns(view: QueryView) -> Sequence[Turn]:
    """The newest batches after the first one, and the running one once it has outlasted the interval; none where all
    are in time. A batch in real-time mode lasts for its interval and what it takes to plan and commit it."""
    interval = view.trigger.interval
    if not interval or view.plan.ends_itself or view.plan.trigger in LONG_RUNNING:
        return []
    batches = view.baseline.settled
    steady = view.baseline.steady[0].started if view.baseline.steady else view.now
    fresh = bisect_left(batches, view.now - WINDOW_SECONDS, key=lambda batch: batch.ended)
    first = min(fresh, max(0, len(batches) - SHOWN_BATCHES))
    limit, running = OVER_RATIO * interval, view.run.unfinished_seconds
    if (running or 0.0) <= limit and all(batch.duration <= limit for batch in batches[first:]):
        return []
    turns, gains = [], False
    without = len(view.batches) - len(batches)  # the first batch of the run
    for place, batch in enumerate(batches[first:], first):
        until_next = batches[place + 1].started - batch.started if place + 1 < len(batches) else float("inf")
        gains = without + place > 0 and _works_off(view.batches[without + place - 1], batch)
        still = stood_still(view, batch.started, batch.ended)
        seconds = min(batch.duration, interval) if gains else batch.duration - still
        taken = min(until_next - still, max(seconds, interval))
        turns.append(Turn(batch, batch.started, seconds, taken, batch.started >= steady))
    running = None if running is None else running - stood_still(view, view.now - running, view.now)
    if running is not None and running > limit and not gains:
        turns.append(Turn(None, view.now - running, running, running, bool(view.baseline.steady)))
    return turns


def _works_off(before: Progress, batch: Progress) -> bool:
    """Whether a batch left less in its sources than the one before it: of a backlog it took as much as it may, and its
    results come sooner than they were due."""
    was, left = backlog(before), backlog(batch)
    return was is not None and left is not None and left < was and was > NOISE_SHARE * batch.rows


def _is_over(turns: Sequence[Turn], late: Sequence[int], ended: Sequence[float]) -> bool:
    """Whether the newest batches are in time again, for longer than they were between two late ones, or get shorter and
    none of them is as long as a late one before them: `ended` are the seconds of all that have ended."""
    spacing = median(after - before for before, after in pairwise(late)) if len(late) > 1 else 1.0
    if len(turns) - 1 - late[-1] > MAX_QUIET_SPACINGS * spacing:
        return True
    newest = ended[-RECENT_BATCHES:]
    if len(newest) < RECENT_BATCHES or any(later >= earlier for earlier, later in pairwise(newest)):
        return False
    before = sum(turn.batch is not None for turn in turns) - RECENT_BATCHES
    shortest = min((turns[place].seconds for place in late if place < before), default=newest[0])
    return newest[0] <= shortest and newest[-1] <= NEARLY_ALL * newest[0]


def _late_results(view: QueryView) -> Harm | None:
    """Batches so long that results are older than the objective when they come: a batch reads what came while the one
    before it ran, so its oldest result is as old as both together.

    Of such long batches two are enough, the one that runs now included, unless they get shorter. While a query reads
    what was there before its run, its rows are old whatever a batch takes.
    """
    if view.trigger.interval or not view.trigger.known or view.plan.ends_itself or _has_old_rows(view):
        return None
    latest = view.baseline.recent
    if len(latest) == RECENT_BATCHES:
        age = 2 * median(batch.duration for batch in latest)
        return Harm("late", age / view.freshness, latest[0].started) if age > view.freshness else None
    seconds = [batch.duration for batch in view.batches if batch.rows > 0]
    if (running := view.run.unfinished_seconds) is not None:
        seconds.append(running)
    for before, newest in list(pairwise(seconds))[-2:]:
        age = before + newest
        if min(before, newest) > VERY_LONG_SECONDS and age > view.freshness and newest >= NEARLY_ALL * before:
            return Harm("late", age / view.freshness, view.batches[0].started)
    return None


def _has_old_rows(view: QueryView) -> bool:
    """Whether one of the newest batches left rows of a backlog from before the run: not all that they read is new."""
    left = [each for _, each in lefts(view.batches)]
    took_all = all(growth.took_all(batch) for batch in view.batches[-RECENT_BATCHES:] if batch.rows)
    return bool(left) and not took_all and growth.piled_up_before(left)


@once
def examined(view: QueryView) -> bool:
    """Whether it is worth saying where the time goes: the query is harmed, or its batches are long and never pause."""
    if harm(view) is not None:
        return True
    if view.run.is_idle or view.plan.ends_itself or view.plan.trigger in LONG_RUNNING:
        return False
    latest = view.baseline.recent
    if len(latest) < RECENT_BATCHES:
        # of a run without three steady batches: of those with rows two are long, or one is very long
        every, settled = ([b.duration for b in some if b.rows > 0] for some in (view.batches, view.baseline.settled))
        long = len(settled) > 1 and min(settled) > max(PROVEN_LONG_SECONDS, view.interval)
        long = long or min(every, default=0.0) > max(VERY_LONG_SECONDS, view.interval)
        return long and (view.trigger.busy_ratio is None or never_pauses(view))
    seconds = median(batch.duration for batch in latest)
    if seconds > LONG_SECONDS and never_pauses(view):
        return True
    usual = [] if view.trigger.interval else [batch.duration for batch in view.baseline.usual]
    return bool(usual) and seconds > CLEAR_TIMES * median(usual)


def never_pauses(view: QueryView) -> bool:
    """Whether batches are known to run back to back, or nearly so."""
    return (view.trigger.busy_ratio or 0.0) >= SATURATED_RATIO


@once
def late_batches(view: QueryView) -> Sequence[Progress]:
    """The finished batches by which the query owes time, oldest first, unless only a few are late and others take time,
    too; of one that owes none, the settled ones."""
    found = owed(view)
    if found is None:
        return view.baseline.settled
    late, whole = (sum(turn.seconds for turn in turns if turn.batch is not None) for turns in (found.late, found.turns))
    if len(found.late) < MIN_LATE_SHARE * len(found.turns) and late < NEARLY_ALL * whole:
        return view.baseline.settled
    return [turn.batch for turn in found.late if turn.batch is not None] or view.baseline.settled


@once
def judged(view: QueryView) -> Sequence[Progress]:
    """The newest of them, which show how it is now; of a run without a settled batch its first one."""
    return late_batches(view)[-SHOWN_BATCHES:] or view.batches[-1:]
