"""Where a search begins: the sustainable rate by the batches of a run whose load doubles again and again."""

from collections.abc import Sequence

from ledgerops.analysis.capacity.fit import MAX_EXTRAPOLATION, fit
from ledgerops.load.test.plan_batches import PlanBatch

COLD_BATCHES = 2  # that take longer because code is compiled


def estimate(done: Sequence[PlanBatch], trigger: float) -> float | None:
    """Rows a second whose batches fill the trigger interval; None if it is unknown.

    By the line through the batches (`ledgerops.analysis.capacity.fit`), no further than it is trusted. Where they are
    too few for a line, because the job was overwhelmed early: by the largest batch that ended within the interval, or
    by what the slowest processed.
    """
    batches = [each for each in done if each.last > each.first][COLD_BATCHES:]
    if not batches:
        return None
    rows, seconds = [each.last - each.first for each in batches], [each.batch.duration for each in batches]
    line = fit(rows, seconds)
    if not isinstance(line, str) and line.overhead < trigger:
        return min((trigger - line.overhead) / line.slope, MAX_EXTRAPOLATION * max(rows)) / trigger
    within = [size for size, took in zip(rows, seconds, strict=True) if took <= trigger]
    beyond = [size / took for size, took in zip(rows, seconds, strict=True) if took > trigger]
    return max(max(within, default=0) / trigger, min(beyond, default=0.0)) or None
