"""One query at one moment: the signals that metrics, rules and displays read, each computed at most once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property

from ledgerops.model.hot_keys import OBSERVATION, HotKey, hottest_key
from ledgerops.signals import arithmetic
from ledgerops.signals.arithmetic import Capacity
from ledgerops.signals.input_view import FIT_BATCHES, InputView
from ledgerops.signals.run_view import BUSY_BATCHES

SATURATED = 0.9  # busy above this counts as saturated: batches run nearly back to back
LEFT = 0.1  # share of a batch's rows that must be left over to speak of a backlog


class View(InputView):
    """All signals of a query: of its run, of what it reads, and what both say together."""

    @cached_property
    def capacity(self) -> Capacity:
        """The fit of batch time over rows; when saturated, what was really worked off stands in for a fit.

        What the query has just worked off it can work off: no fit gives less.
        """
        batches = [batch for batch in self.steady[-FIT_BATCHES:] if batch.rows > 0]
        interval = self.trigger_interval
        fitted = arithmetic.fit_capacity([b.rows for b in batches], [b.duration for b in batches])
        if not isinstance(fitted, str):
            overhead, rate = fitted
            newest = batches[-BUSY_BATCHES:]
            shown = sum(each.rows for each in newest) / sum(max(each.duration, interval or 0.0) for each in newest)
            sustainable = max(shown, rate * max(0.0, 1 - overhead / interval) if interval else rate)
            return Capacity(overhead, rate, sustainable, len(batches), "fitted")
        saturated = [batch for batch in batches[-BUSY_BATCHES:] if batch.duration >= SATURATED * (interval or 0.0)]
        left = (self.backlog or 0) * min(self.rows_per_offset.values(), default=1.0)
        if (self.busy_ratio or 0.0) >= SATURATED and len(saturated) >= 3 and left >= LEFT * batches[-1].rows:
            observed = sum(batch.rows for batch in saturated) / sum(batch.duration for batch in saturated)
            return Capacity(None, None, observed, len(saturated), "observed while saturated")
        return Capacity(None, None, None, len(batches), fitted)

    @cached_property
    def pressure_ratio(self) -> float | None:
        """Arrival over sustainable capacity: above 1 the backlog must grow."""
        sustainable = self.capacity.sustainable
        return self.arrival / sustainable if self.arrival is not None and sustainable else None

    @cached_property
    def drain_seconds(self) -> float | None:
        """Seconds until the backlog is gone at the present rates; None when unknown or never."""
        left, sustainable = self.backlog, self.capacity.sustainable
        if left is None or self.arrival is None or sustainable is None:
            return None
        if left == 0:
            return 0.0
        spare = sustainable - self.arrival
        factor = min(self.rows_per_offset.values(), default=1.0)
        return left * factor / spare if spare > 0 else None

    @cached_property
    def watermark_lag(self) -> float | None:
        """Now minus the watermark: grows while the query is stuck or its input is old."""
        if self.last is None or self.last.watermark is None:
            return None
        return max(0.0, self.now - self.last.watermark)

    @cached_property
    def hot_keys(self) -> Sequence[HotKey]:
        """The hottest key of each of the newest batches that observed keys, newest first; needs `instrument`."""
        return [hot for batch in reversed(self.batches[-5:]) if (hot := hottest_key(batch)) is not None]

    @cached_property
    def hot_key(self) -> HotKey | None:
        """The hottest key of the newest batch that observed keys; None without `ledgerops.instrument`."""
        return self.hot_keys[0] if self.hot_keys else None

    @cached_property
    def key_column(self) -> str | None:
        """The column that `instrument` observes as the key; None where it does not say."""
        for batch in reversed(self.batches[-5:]):
            for name, row in batch.observed.items():
                if name.startswith(OBSERVATION) and isinstance(column := row.get("key"), str):
                    return column
        return None

    @cached_property
    def skew(self) -> Mapping[str, tuple[float | None, float | None]]:
        """(max / median, FLIP-418 score) by kind, of the latest batch: lifetime totals would hide it."""
        found: dict[str, tuple[float | None, float | None]] = {}
        if self.last is not None:
            read = list(arithmetic.read_by_partition(self.last).values())
            if len(read) > 1:
                found["source_partition"] = (arithmetic.skew_ratio(read), arithmetic.skew_score(read))
        stage = self.widest_stage
        if stage is not None:
            if stage.records_median > 0:
                found["task_records"] = (arithmetic.ratio(stage.records_max, stage.records_median), stage.records_score)
            if stage.seconds_median > 0:
                found["task_time"] = (arithmetic.ratio(stage.seconds_max, stage.seconds_median), stage.seconds_score)
            if len(stage.executors) > 1:
                shares = [share.run_seconds for share in stage.executors.values()]
                found["executor"] = (arithmetic.skew_ratio(shares), arithmetic.skew_score(shares))
        return found
