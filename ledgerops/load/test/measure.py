"""What a run did, measured against the plan: the plan says when every row was due, the offsets of each batch say when
it was finished. Spark's own rates, lag and event times are not used.

A row is finished when the batch that contains it ends; its latency counts from when it was due, not from when it was
read, so that a query which reads late cannot hide it (coordinated omission). Offsets stand for the first n rows of the
plan, so the latency of every row is known in closed form.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from statistics import median
from typing import NamedTuple

import numpy as np

from ledgerops.load.test.latency import Rows, Weighted
from ledgerops.load.test.plan_batches import PlanBatch
from ledgerops.load.test.plans import Due
from ledgerops.model.records import StateOperator

MIN_BATCHES = 5  # finished in the measured part; with fewer neither a slope nor a percentile means anything
INTERVAL_ERRORS = 1.645  # standard errors: the ends of a 90 % interval
MAX_SLOPE_INTERVAL = 0.10  # half an interval of the slope wider than this says nothing about a growth of one percent
MIN_LAG_SECONDS = 0.2  # below it no lag grows


class BatchFigures(NamedTuple):
    """Seconds: age of the oldest unfinished row right before the batch ended and right after; latency of its rows."""

    peak: float | None
    left: float
    p50: float | None
    p99: float | None
    waiting: float | None


@dataclass(frozen=True)
class Measured:
    """The part of a run from `begin` to `end`. An unknown figure is None; `unknown_because` says why."""

    job: str
    trigger: float | None
    begin: float
    end: float
    arrivals: Due
    done: Sequence[PlanBatch]  # all of the run, oldest first
    error: str | None = None  # why the run failed, in one line

    @cached_property
    def inside(self) -> Sequence[PlanBatch]:
        """The batches that ended in the measured part."""
        return [each for each in self.done if self.begin <= each.batch.ended <= self.end]

    @cached_property
    def unknown_because(self) -> str:
        """Why the run gives no figures; empty if it does."""
        if self.error:
            return self.error
        if len(self.inside) < MIN_BATCHES:
            return f"{len(self.inside)} batches ended in {self.end - self.begin:.0f} s, {MIN_BATCHES} are needed"
        return ""

    @cached_property
    def offered(self) -> float:
        """Rows a second that were due."""
        span = self.end - self.begin
        return (self.arrivals.count(self.end) - self.arrivals.count(self.begin)) / span if span > 0 else 0.0

    @cached_property
    def finished(self) -> int:
        """Rows of the plan that were finished by the end."""
        return max((each.last for each in self.done if each.batch.ended <= self.end), default=0)

    @cached_property
    def processed(self) -> float | None:
        """Rows finished over rows due, from the end of the first batch to the end of the last; None if none was due.

        Between two ends of batches, since the end of a run falls anywhere in a batch.
        """
        if self.unknown_because:
            return None
        first, last = self.inside[0], self.inside[-1]
        due = self.arrivals.count(last.batch.ended) - self.arrivals.count(first.batch.ended)
        return (last.last - first.last) / due if due > 0 else None

    @cached_property
    def rows(self) -> Rows:
        """The rows that were due in the measured part.

        A row that is not finished at the end counts with its age then, the least that its latency can be. Those younger
        than the median latency are left out: every run ends with some of them.
        """
        if self.unknown_because:
            return Rows.none()
        batches = [each for each in self.done if each.batch.ended <= self.end]
        read = Rows.joined(self._rows_of(each) for each in batches)
        finished = read.where((read.due >= self.begin) & (read.due < self.end))
        usual = finished.latency.at(0.5) or 0.0
        first = max(self.finished, math.ceil(self.arrivals.count(self.begin)))
        last = math.floor(self.arrivals.count(self.end - usual))
        return Rows.joined([finished, self._unfinished(first, last)])

    def _unfinished(self, first: int, last: int) -> Rows:
        """Rows that no batch has finished. The batch in progress has those due when the last one ended."""
        began = max((each.batch.ended for each in self.done if each.batch.ended <= self.end), default=self.end)
        left = Rows.of(self.arrivals, first, last, self.end, self.end)
        return replace(left, start=np.where(left.due <= began, began, self.end))

    def _rows_of(self, each: PlanBatch) -> Rows:
        return Rows.of(self.arrivals, each.first, each.last, each.batch.started, each.batch.ended)

    def batch_figures(self, each: PlanBatch) -> BatchFigures:
        """The ages and latencies of the rows of one batch."""
        rows = self._rows_of(each)
        first, following = self.arrivals.instants(np.array([float(each.first), float(each.last)]))
        ended = each.batch.ended
        return BatchFigures(
            max(0.0, ended - float(first)) if each.last > each.first else None,
            max(0.0, ended - float(following)),
            rows.latency.at(0.5),
            rows.latency.at(0.99),
            rows.waiting.at(0.99),
        )

    @cached_property
    def ages(self) -> list[tuple[float, float]]:
        """(instant, seconds): how old the oldest row that was not finished is, right after each batch."""
        nexts = self.arrivals.instants(np.array([float(each.last) for each in self.inside]))
        return [
            (each.batch.ended, max(0.0, each.batch.ended - due)) for each, due in zip(self.inside, nexts, strict=True)
        ]

    @cached_property
    def lag(self) -> float | None:
        """The peak age of the oldest unfinished row: right before a batch ends, or at the end."""
        if self.unknown_because:
            return None
        firsts = self.arrivals.instants(np.array([float(each.first) for each in self.inside]))
        known = zip(self.inside, firsts, strict=True)
        peaks = [each.batch.ended - float(due) for each, due in known if each.last > each.first]
        return max([self.final_age, *peaks])

    @cached_property
    def final_age(self) -> float:
        """The age of the oldest row that is not finished at the end."""
        return max(0.0, self.end - float(self.arrivals.instants(np.array([float(self.finished)]))[0]))

    @cached_property
    def slope(self) -> float | None:
        """Growth of the age after batches, in seconds a second: at its lower end, so what is certain of it.

        At a steady load that is rows of backlog a second over rows offered a second. A straight line through the ages
        (as Theodolite has it), its slope less INTERVAL_ERRORS standard errors: batches that vary by a quarter of a
        second make the plain slope of a 30 s run jump by one percent either way. None where the interval is wider than
        MAX_SLOPE_INTERVAL.
        """
        if self.age_slope is None:
            return None
        middle, half = self.age_slope
        if half > MAX_SLOPE_INTERVAL and middle - half <= 0 and max(age for _, age in self.ages) > MIN_LAG_SECONDS:
            return None
        return max(0.0, middle - half) if middle >= 0 else min(0.0, middle + half)

    @cached_property
    def age_slope(self) -> tuple[float, float] | None:
        """The slope of the ages and half its 90 % interval."""
        if self.unknown_because:
            return None
        at, age = np.array(self.ages).T
        at = at - at.mean()
        spread = float((at**2).sum())
        if not spread:
            return None
        slope = float((at * age).sum() / spread)
        rest = age - age.mean() - slope * at
        error = math.sqrt(float((rest**2).sum()) / (len(at) - 2) / spread)
        return slope, INTERVAL_ERRORS * error

    def batch_seconds(self, share: float) -> float | None:
        """The duration that so large a share of the batches do not exceed; 0.5 gives the median."""
        times = np.array(sorted(each.batch.duration for each in self.inside))
        return None if self.unknown_because else Weighted.of(times, np.ones(len(times))).at(share)

    @cached_property
    def state_bytes(self) -> float | None:
        """Memory of all state operators at its highest; 0 of a query without state."""
        return self._state(lambda each: each.memory_bytes)

    @cached_property
    def state_rows(self) -> float | None:
        """Rows in all state operators at their highest; 0 for a query without state, None if unknown."""
        return self._state(lambda each: each.rows)

    def _state(self, read: Callable[[StateOperator], int]) -> float | None:
        if self.unknown_because:
            return None
        return float(max(sum(read(operator) for operator in each.batch.operators) for each in self.inside))

    @cached_property
    def state_growth(self) -> float | None:
        """Rows of state that the median batch adds for each row it reads, in the second half less the first half.

        A state that fills evenly, that is full, or that a watermark empties now and then gives about 0.
        """
        if self.unknown_because:
            return None
        added = [
            (sum(o.rows for o in later.batch.operators) - sum(o.rows for o in earlier.batch.operators))
            / (later.last - earlier.last)
            for earlier, later in pairwise(self.inside)
            if later.last > earlier.last
        ]
        half = len(added) // 2
        return median(added[half:]) - median(added[:half]) if half else None
