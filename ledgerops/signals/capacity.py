"""What a query can sustain: a line through its batches' rows and seconds, or what it did while saturated."""

from collections.abc import Sequence
from typing import NamedTuple

from ledgerops.common.format import counted
from ledgerops.signals.baseline import Baseline
from ledgerops.signals.lag import Lag
from ledgerops.signals.memo import kept
from ledgerops.signals.rates import Rates
from ledgerops.signals.theil_sen import fit_line
from ledgerops.signals.trigger import BUSY_BATCHES, SATURATED_RATIO

FIT_BATCHES = 60  # newest batches that the line goes through: older ones had another load
MIN_FIT_BATCHES = 8  # fewer points let one slow batch tilt the line
MIN_FIT_SPREAD = 0.2  # (p90 - p10) / mean of the rows: below it the slope is noise
MIN_FIT_AGREEMENT = 0.4  # share of pairs in which the larger batch takes longer, less the share in which it does not
MIN_SATURATED_BATCHES = 3
MIN_LEFT_SHARE = 0.1  # of a batch's rows; fewer left over are not a backlog
OBSERVED = "observed while saturated"


class Estimate(NamedTuple):
    """batch time = overhead + rows / rate.

    `rate` and `sustainable` are rows a second; `sustainable` is what a trigger interval T leaves of the rate,
    rate x (1 - overhead / T). When only one is known the other is None, and `reason` says why.
    """

    overhead: float | None
    rate: float | None
    sustainable: float | None
    batches: int
    reason: str  # how it was found, or why it could not be


def unfit(rows: Sequence[float]) -> str | None:
    """Why no line can be laid through batches of these rows; None when one can."""
    count = len(rows)
    if count < MIN_FIT_BATCHES:
        few = counted(count, "batch has", "batches have")
        return f"only {few} rows after the run's warm-up; {MIN_FIT_BATCHES} are needed"
    ordered = sorted(rows)
    spread = (ordered[(count * 9) // 10] - ordered[count // 10]) / (sum(rows) / count)
    if spread < MIN_FIT_SPREAD:
        return (
            f"batches have nearly the same size (the middle 80% spread over {spread:.0%} of the mean, "
            f"{MIN_FIT_SPREAD:.0%} is needed)"
        )
    return None


def fit_capacity(rows: Sequence[float], seconds: Sequence[float]) -> tuple[float, float] | str:
    """The line of batch seconds over rows: (overhead in s, rate in rows/s), or the reason why there is none."""
    reason = unfit(rows)
    if reason is not None:
        return reason
    line = fit_line(rows, seconds)
    if line is None or line.slope <= 0 or line.agreement <= 0:
        return "batch time does not grow with the rows"
    if line.agreement < MIN_FIT_AGREEMENT:
        return f"more rows take longer in only {(1 + line.agreement) / 2:.0%} of the pairs of batches"
    return line.overhead, 1 / line.slope


class Capacity:
    """What one run can sustain, and how much of that is asked of it."""

    def __init__(self, baseline: Baseline, rates: Rates, lag: Lag) -> None:
        self._baseline = baseline
        self._rates = rates
        self._lag = lag

    @kept
    def estimate(self) -> Estimate:
        """The line of batch time over rows; when saturated without one, the rows a second that were processed. What the
        query has just processed it can process: no line gives less."""
        batches = [batch for batch in self._baseline.steady[-FIT_BATCHES:] if batch.rows > 0]
        trigger = self._baseline.trigger
        interval = trigger.interval
        fitted = fit_capacity([b.rows for b in batches], [b.duration for b in batches])
        if not isinstance(fitted, str):
            overhead, rate = fitted
            newest = batches[-BUSY_BATCHES:]
            shown = sum(each.rows for each in newest) / sum(max(each.duration, interval or 0.0) for each in newest)
            sustainable = max(shown, rate * max(0.0, 1 - overhead / interval) if interval else rate)
            return Estimate(overhead, rate, sustainable, len(batches), "fitted")
        saturated = [b for b in batches[-BUSY_BATCHES:] if b.duration >= SATURATED_RATIO * (interval or 0.0)]
        left = (self._lag.backlog or 0) * self.rows_per_offset
        if (
            (trigger.busy_ratio or 0.0) >= SATURATED_RATIO
            and len(saturated) >= MIN_SATURATED_BATCHES
            and left >= MIN_LEFT_SHARE * batches[-1].rows
        ):
            observed = sum(batch.rows for batch in saturated) / sum(batch.duration for batch in saturated)
            return Estimate(None, None, observed, len(saturated), OBSERVED)
        return Estimate(None, None, None, len(batches), fitted)

    @property
    def rows_per_offset(self) -> float:
        """The fewest of all sources: backlog is counted in offsets."""
        return min(self._rates.rows_per_offset.values(), default=1.0)

    @property
    def sustainable(self) -> float | None:
        """Rows a second that the query can keep up with."""
        return self.estimate.sustainable

    @property
    def overhead(self) -> float | None:
        """Seconds that a batch takes without any row."""
        return self.estimate.overhead

    @property
    def pressure_ratio(self) -> float | None:
        """Arrival over sustainable capacity: above 1 the backlog must grow."""
        arrival, sustainable = self._rates.arrival, self.sustainable
        return arrival / sustainable if arrival is not None and sustainable else None

    @kept
    def drain_seconds(self) -> float | None:
        """Seconds until the backlog is gone: as fast as it shrinks, else by what arrival leaves of the capacity. None
        when unknown or never."""
        if self._lag.shrinks and self._lag.backlog and self._lag.falls_by > 0:
            return self._lag.backlog / self._lag.falls_by
        left, arrival = self._lag.unread_offsets, self._rates.arrival
        if left is None or arrival is None or self.sustainable is None:
            return None
        if left == 0:
            return 0.0
        spare = self.sustainable - arrival
        return left * self.rows_per_offset / spare if spare > 0 else None
