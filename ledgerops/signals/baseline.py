"""What is usual for a query: its batches after the warm-up, and those before the latest that were in time."""

from bisect import bisect_left
from collections.abc import Sequence
from statistics import median
from typing import NamedTuple

from ledgerops.model.records import Progress
from ledgerops.signals.memo import kept
from ledgerops.signals.run import Run
from ledgerops.signals.trigger import Trigger

WARM_UP_SECONDS = 10.0  # six queries that start together on two cores need this long until their batches settle
FIRST_BATCHES = 1  # of a run, which include planning and warm-up
RECENT_BATCHES = 3  # one slow batch is noise, three are how it is now
MIN_USUAL_BATCHES = 5  # needed before 'slower than usual' means anything
MIN_DURATIONS = 3  # for a median
CHANGED_RATIO = 1.5  # of the time for as many rows
MORE_RATIO = 1.3  # of the rows a second
SAME_RATE_RATIO = 1.2  # of the rows a second, below which they count as equal
OVER_RATIO = 1.05  # of the interval; nearer to 1 only the alignment of batches with their triggers differs


class Slowdown(NamedTuple):
    """The latest batches against the usual ones. `factor` allows for more rows: they may take longer in proportion."""

    factor: float
    seconds: float
    usual_seconds: float
    rows: float
    usual_rows: float


class Baseline:
    """The batches of one run that later ones are compared with."""

    def __init__(self, run: Run, trigger_interval: float | None = None) -> None:
        self._run = run
        self._trigger_interval = trigger_interval

    @kept
    def settled(self) -> Sequence[Progress]:
        """The run's batches without its first: that one pays for warm-up."""
        batches = self._run.batches
        if batches and batches[0].batch_id == self._run.history.first_batch:
            return batches[FIRST_BATCHES:]
        return batches

    @kept
    def steady(self) -> Sequence[Progress]:
        """The run's batches without its start: not the first one, none that began in the first WARM_UP_SECONDS. A long
        first batch is followed by a long warm-up: what waited meanwhile makes the second one large."""
        batches, history = self._run.batches, self._run.history
        if not batches:
            return []
        first = batches[0]
        if first.batch_id != history.first_batch:
            return batches
        began = max(
            min(first.started, history.started_at or first.started) + WARM_UP_SECONDS,
            first.ended + min(WARM_UP_SECONDS, first.duration),
        )
        return batches[max(FIRST_BATCHES, bisect_left(batches, began, key=lambda batch: batch.started)) :]

    @kept
    def trigger(self) -> Trigger:
        """The rhythm of the run's batches."""
        return Trigger(self._run, self.settled, self._trigger_interval)

    @kept
    def recent(self) -> Sequence[Progress]:
        """The newest RECENT_BATCHES steady batches, or fewer where the run has not so many yet."""
        return self.steady[-RECENT_BATCHES:]

    @kept
    def durations(self) -> Sequence[float]:
        """Seconds of the settled batches, the shortest first."""
        return sorted([batch.duration for batch in self.settled])

    @kept
    def usual_duration(self) -> float | None:
        """Median batch duration in seconds over the settled batches; None before three of them."""
        return median(self.durations) if len(self.durations) >= MIN_DURATIONS else None

    @kept
    def usual(self) -> Sequence[Progress]:
        """The batches with rows that were in time before the latest few; empty if they are too few to compare with."""
        interval, older = self.trigger.interval, self.steady[: -RECENT_BATCHES - 1]
        in_time = _mostly_in_time(older, OVER_RATIO * interval) if interval else older
        with_rows = [batch for batch in in_time if batch.rows > 0]
        if not interval:
            with_rows = _before_change(with_rows)
        if len(with_rows) < MIN_USUAL_BATCHES:
            return []
        latest = [batch for batch in self.recent if batch.rows > 0]
        return with_rows if interval or not latest or _differ(with_rows, latest) else []

    @kept
    def slowdown(self) -> Slowdown | None:
        """How much longer the latest batches take than the usual ones; None without a past to compare with."""
        return self.slowdown_of(self.recent)

    def slowdown_of(self, batches: Sequence[Progress]) -> Slowdown | None:
        """The same of other batches of the run."""
        latest = [batch for batch in batches if batch.rows > 0]
        if not self.usual or not latest:
            return None
        usual_seconds = median(batch.duration for batch in self.usual)
        usual_rows = median(batch.rows for batch in self.usual)
        rows, seconds = median(batch.rows for batch in latest), median(batch.duration for batch in latest)
        allowed = usual_seconds * max(1.0, rows / usual_rows)
        return Slowdown(seconds / allowed, seconds, usual_seconds, rows, usual_rows) if allowed > 0 else None


def _mostly_in_time(older: Sequence[Progress], limit: float) -> list[Progress]:
    """Those that took at most `limit` seconds, as most of the MIN_USUAL_BATCHES around them: one among late batches is
    in time by chance, and a query that was late from its first batch has no healthy past."""
    fits, beside = [batch.duration <= limit for batch in older], MIN_USUAL_BATCHES // 2
    around = [fits[max(0, place - beside) : place + beside + 1] for place in range(len(fits))]
    return [batch for batch, fit, near in zip(older, fits, around, strict=True) if fit and 2 * sum(near) > len(near)]


def _before_change(older: Sequence[Progress]) -> list[Progress]:
    """Without the newest of them that already take longer: where no interval says that a batch was late, a change that
    lasts for more than a few batches would become part of what is usual."""
    kept = list(older)
    if kept:
        rows, seconds = median(batch.rows for batch in kept), median(batch.duration for batch in kept)
        while kept and _slower(kept[-1].rows, kept[-1].duration, rows, seconds):
            kept.pop()
    return kept


def _slower(rows: float, seconds: float, usual_rows: float, usual_seconds: float) -> bool:
    """Whether batches that run back to back take longer than usual, and more rows do not explain it. Each reads what
    came while the one before it ran: if no more rows came a second, a long batch has more because it is long."""
    arrived_more = rows * usual_seconds >= SAME_RATE_RATIO * usual_rows * seconds
    return seconds > CHANGED_RATIO * usual_seconds * (max(1.0, rows / usual_rows) if arrived_more else 1.0)


def _differ(older: Sequence[Progress], latest: Sequence[Progress]) -> bool:
    """Whether the latest batches take longer, or have more rows a second to take.

    Where no interval says that the older batches were in time, they are usual only if something changed since.
    """
    rows, usual_rows = median(batch.rows for batch in latest), median(batch.rows for batch in older)
    seconds, usual_seconds = median(batch.duration for batch in latest), median(batch.duration for batch in older)
    slower = _slower(rows, seconds, usual_rows, usual_seconds)
    return slower or rows / seconds > MORE_RATIO * usual_rows / usual_seconds


def overran(batch: Progress, interval: float | None) -> bool:
    """Whether the batch outlasted a trigger interval that is known and not zero."""
    return bool(interval) and batch.duration > OVER_RATIO * (interval or 0.0)
