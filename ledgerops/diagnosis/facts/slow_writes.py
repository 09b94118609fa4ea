"""Which batches of a query are far slower than the rest, now and then, and whether it is their sink."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from statistics import median, pstdev
from typing import NamedTuple

from ledgerops.common.format import duration
from ledgerops.diagnosis.batch_parts import DRIVER, UNEVEN, Split
from ledgerops.diagnosis.facts.contention import contention
from ledgerops.diagnosis.harm import MIN_LATE_SHARE, WINDOW_SECONDS
from ledgerops.diagnosis.limits import (
    CLEAR_TIMES,
    FAR_TIMES,
    LONG_SECONDS,
    LOOKBACK_BATCHES,
    MIN_BATCHES,
    MOSTLY,
    VERY_FAR_TIMES,
)
from ledgerops.diagnosis.profile import split_of
from ledgerops.model.records import Progress
from ledgerops.signals.baseline import OVER_RATIO
from ledgerops.signals.query_view import QueryView

MIN_JUDGED_BATCHES = 8  # needed to know what is usual
MIN_EVENTS = 3  # separate slow batches: one is a hiccup, two may be a coincidence
FAR_SECONDS = 15.0  # two are enough when each is very far longer than usual, and they add up to so many seconds
COMPACTION_BATCHES = 10  # Spark's default interval for compacting state snapshots and metadata logs
MAX_REGULAR_DEVIATION = 0.35  # standard deviation over mean of the spacings; a timer stays below it


class Stalls(NamedTuple):
    """The newest batches, the usual seconds of one, the slow ones, and those of them that do not follow a slow one."""

    batches: Sequence[Progress]
    usual: float
    slow: Sequence[Progress]
    events: Sequence[Progress]

    @property
    def spacings(self) -> Sequence[float]:
        """Seconds between the starts of the events."""
        return [later.started - earlier.started for earlier, later in pairwise(self.events)]

    @property
    def excess(self) -> float:
        """Median seconds of a slow one beyond the usual."""
        return median(each.duration for each in self.slow) - self.usual

    @property
    def lost(self) -> float:
        """Seconds of all slow ones beyond the usual."""
        return sum(batch.duration - self.usual for batch in self.slow)

    @property
    def far(self) -> bool:
        """Whether each is so long that a third would come late."""
        durations = [each.duration for each in self.slow]
        return min(durations, default=0.0) >= VERY_FAR_TIMES * self.usual and sum(durations) >= FAR_SECONDS

    @property
    def regular(self) -> bool:
        """Whether the events come in a rhythm."""
        spacings = self.spacings
        return len(spacings) > 1 and pstdev(spacings) < MAX_REGULAR_DEVIATION * (sum(spacings) / len(spacings))

    @property
    def rhythm(self) -> str:
        """When they come, as text."""
        between = duration(median(self.spacings))
        if len(self.spacings) == 1:
            return f"{between} apart"
        return f"every {between}" if self.regular else f"at irregular intervals with a median of {between}"


def slow_writes(view: QueryView) -> Stalls | None:
    """The stalls, if there are enough of them, they are not the rule, and the newest is not long ago."""
    interval = view.interval
    found = _split(_newest(view, view.baseline.steady), interval)
    if 0 < len(found.events) < MIN_EVENTS:
        found = _split(_newest(view, view.baseline.settled), interval)
    needed = MIN_BATCHES if found.far else MIN_EVENTS
    if (
        len(found.batches) < MIN_JUDGED_BATCHES
        or len(found.events) < needed
        or len(found.slow) >= MIN_LATE_SHARE * len(found.batches)
        or (interval and found.usual > interval)
    ):
        return None
    over = view.now - found.slow[-1].ended > CLEAR_TIMES * max(median(found.spacings), interval)
    return None if over else found


def _newest(view: QueryView, batches: Sequence[Progress]) -> Sequence[Progress]:
    return [each for each in batches[-LOOKBACK_BATCHES:] if each.started >= view.now - WINDOW_SECONDS]


def _split(batches: Sequence[Progress], interval: float) -> Stalls:
    if not batches:
        return Stalls(batches, 0.0, [], [])
    usual = median([batch.duration for batch in batches])
    least = max(FAR_TIMES * usual, usual + LONG_SECONDS, OVER_RATIO * interval)
    long = [batch for batch in batches if batch.duration > least]
    if not long:
        return Stalls(batches, usual, [], [])
    rows = max(1.0, median([batch.rows for batch in batches]))
    slow = [batch for batch in long if batch.duration > CLEAR_TIMES * usual * max(1.0, batch.rows / rows)]
    first = [b for place, b in enumerate(batches) if b in slow and (place == 0 or batches[place - 1] not in slow)]
    return Stalls(batches, usual, slow, first)


def explained(view: QueryView, found: Stalls) -> bool:
    """Whether something else makes them slow: Spark tidies up, collects garbage, saves or removes state, or has no
    cores."""
    tidies = view.run.stateful and len({each.batch_id % COMPACTION_BATCHES for each in found.events}) == 1
    return tidies or _collected(view, found) or _by_state(found) or contention(view) is not None


def _by_state(found: Stalls) -> bool:
    """Whether the work on the state took half of the excess, over all tasks, or far more rows left it than usual."""
    seconds = median(batch.state_seconds / (batch.duration - found.usual) for batch in found.slow)
    removed, usually = (
        median(sum(each.removed for each in batch.operators) for batch in some) for some in (found.slow, found.batches)
    )
    return seconds >= MOSTLY or removed > CLEAR_TIMES * usually


def _collected(view: QueryView, found: Stalls) -> bool:
    """Whether the executors collected garbage for half of all the excess."""
    samples = [host for host in view.hosts if host.at >= found.batches[0].started and host.executors]
    if len(samples) < 2:
        return False
    first = {each.executor_id: each.gc_seconds for each in samples[0].executors}
    grown = [each.gc_seconds - first[each.executor_id] for each in samples[-1].executors if each.executor_id in first]
    return max(grown, default=0.0) >= MOSTLY * found.lost


def waiting_share(view: QueryView, found: Stalls) -> float:
    """The share of the excess in which no task computes."""
    known = [split for batch in found.slow if (split := split_of(view, batch)) is not None and split.stages]
    if known:
        parts = (*DRIVER, "sink_wait", "waiting")
        return median(_share_of(each, parts, found) - _share_of(each, UNEVEN, found) for each in known)
    before = median(batch.phases.get("add_batch", 0.0) for batch in found.batches)
    return median(
        min(1.0, (batch.phases.get("add_batch", 0.0) - before) / (batch.duration - found.usual)) for batch in found.slow
    )


def _share_of(each: Split, parts: Sequence[str], found: Stalls) -> float:
    """Of the excess of one batch, at most all of it. One slow task makes the others wait, too."""
    return min(1.0, sum(each.seconds.get(part, 0.0) for part in parts) / (each.batch.duration - found.usual))
