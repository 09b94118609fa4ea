"""Rankings over all metrics: how far each moved from its values before (z-score), and how sharply it broke.

Both are told when the fault began, as methods of root cause analysis usually are, and answer once, at the end of the
case. Of a healthy case, of which there is no such time, they compare the last two thirds with the first, and answer
only if batch duration, lag, backlog or watermark pass their threshold: of hundreds of metrics, some always do.
"""

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from ledgerops.drills.benchmark.baselines.data import (
    SERVICE,
    Answer,
    Array,
    BenchmarkCase,
    Series,
    answered,
    moved,
    series,
)
from ledgerops.drills.benchmark.baselines.mapping import causes_of

MIN_SAMPLES = 3  # before, and after

Score = Callable[[Array, Array], float]


def z_score(before: Array, after: Array) -> float:
    """The largest distance of a value after from the median before, in standard deviations by the median deviation."""
    centre = np.median(before)
    spread = 1.4826 * np.median(np.abs(before - centre))
    # of a metric that stood still, a hundredth of its size
    floor = max(1e-9, 0.01 * float(np.max(np.abs(np.concatenate([before, after])))))
    return float(np.max(np.abs(after - centre)) / max(float(spread), floor))


def change_point(before: Array, after: Array) -> float:
    """The share of the squared deviations that one step, at the best place from the time told on, explains (0 to 1)."""
    values = np.concatenate([before, after])
    total = float(np.sum((values - values.mean()) ** 2))
    if total <= 1e-12 * max(1.0, float(np.max(np.abs(values))) ** 2):
        return 0.0
    best = 0.0
    for place in range(len(before), len(values) - 1):
        left, right = values[:place], values[place:]
        best = max(best, len(left) * len(right) / len(values) * float(left.mean() - right.mean()) ** 2 / total)
    return best


SPEAKS: Mapping[Score, float] = {z_score: 10.0, change_point: 0.9}  # of a healthy case, from there on


def rank(
    times: Sequence[float], metrics: Sequence[Series], split: float, score: Score
) -> list[tuple[str, float, float]]:
    """Metrics by their score, the highest first: name, how far it moved, score."""
    found = []
    for metric in metrics:
        before, after = metric.around(times, split)
        if len(before) < MIN_SAMPLES or len(after) < MIN_SAMPLES:
            continue
        if value := score(before, after):
            found.append((metric.name, moved(before, after), value))
    return sorted(found, key=lambda entry: -entry[2])


def answer(case: BenchmarkCase, score: Score) -> list[Answer]:
    """The causes that the metrics with the highest scores name; of a healthy case only above what SPEAKS says."""
    times, metrics = series(case.rows(), case.started, case.ended)
    ranked = rank(times, metrics, case.split, score)
    service = max((value for name, _, value in ranked if name.partition("{")[0] in SERVICE), default=0.0)
    if case.onset is None and service < SPEAKS[score]:
        return [answered(case.name, case.ended, ())]
    return [answered(case.name, case.ended, causes_of((name, way) for name, way, _ in ranked))]
