"""The figures of a query's batches over time, for plots: bounded, however long the recording is."""

from collections.abc import Mapping
from typing import NamedTuple, TypeVar

from ledgerops.analysis.batch_samples import BatchSample, batch_sample
from ledgerops.model.records import Progress
from ledgerops.signals.query_view import QueryView

MAX_PAUSE_SECONDS = 0.5  # between two batches that run back to back
MAX_POINTS = 4000  # some two hours of a batch every 2 s in full; a plot is a thousand pixels wide
Each = TypeVar("Each")


class Sample(NamedTuple):
    """A value at an instant (epoch seconds)."""

    at: float
    value: float


class Track:
    """Takes a view after each verdict, oldest first."""

    def __init__(self) -> None:
        self.batches: list[BatchSample] = []
        self.age: list[Sample] = []  # of the oldest row that no batch has finished yet, in seconds: at its highest
        self.skew: dict[str, list[Sample]] = {}  # max over median, by kind
        self.interval: float | None = None
        self._last: Progress | None = None
        self._fresh: float | None = None  # all that came before this instant was processed by the last batch
        self._skewed: Mapping[str, object] = {}

    def take(self, view: QueryView) -> None:
        """Adds the newest batch, the age of results in seconds and the skew; ignored once the query has ended."""
        last = view.last
        if last is None or (view.history.ended is not None and view.now > view.history.ended.at):
            return
        self.interval = view.trigger.interval
        if self._last is None or (last.run_id, last.batch_id) != (self._last.run_id, self._last.batch_id):
            self._note_age(last, view)
            self.batches.append(batch_sample(self._last, last, view))
            self._last = last
        elif self._fresh is not None and view.run.running_seconds is not None:
            age = view.now - self._fresh
            if self.age and age > self.age[-1].value:  # it grows while a batch hangs
                self.age.append(Sample(view.now, age))
        if view.skew.ratios != self._skewed:
            for kind, (ratio, _) in view.skew.ratios.items():
                if ratio is not None:
                    self.skew.setdefault(kind, []).append(Sample(view.now, ratio))
            self._skewed = view.skew.ratios
        self._bound()

    def _note_age(self, last: Progress, view: QueryView) -> None:
        """A batch is done: until now the results were as old as what the batch before had left."""
        same = self._last is not None and self._last.run_id == last.run_id  # what waits for a restart does wait
        gap = last.started - self._last.ended if self._last is not None else 0.0
        waited = same and gap > 1.5 * (self.interval or 0.0) + MAX_PAUSE_SECONDS
        before = self._fresh
        if before is None or waited:  # nothing came for a while: the oldest row came after the last empty sample
            before = max(before or 0.0, last.started - (self.interval or 0.0))
        self.age.append(Sample(last.ended, max(0.0, last.ended - before)))
        left = [at for at in view.lag.consumed_until.values() if at != float("inf")]
        self._fresh = min([last.started, *left])

    def _bound(self) -> None:
        if len(self.batches) > MAX_POINTS:
            self.batches = [max(pair, key=lambda each: each.seconds) for pair in _pairs(self.batches)]
        for samples in (self.age, *self.skew.values()):
            if len(samples) > MAX_POINTS:
                samples[:] = [max(pair, key=lambda each: each.value) for pair in _pairs(samples)]


def _pairs(points: list[Each]) -> list[list[Each]]:
    """Neighbours by two, of which the worse is kept: a plot must not lose a peak."""
    return [points[start : start + 2] for start in range(0, len(points), 2)]
