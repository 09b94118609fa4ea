"""How unevenly work is shared: between source partitions, tasks, executors and keys."""

import math
from collections.abc import Mapping, Sequence
from statistics import median

from ledgerops.model.observed_metrics import OBSERVATION, HotKey, hottest_key
from ledgerops.model.records import StageSummary
from ledgerops.signals.cluster import Cluster
from ledgerops.signals.memo import kept
from ledgerops.signals.partitions import read_by_partition
from ledgerops.signals.run import Run

KEY_BATCHES = 5  # newest batches whose observed keys count


def skew_ratio(values: Sequence[float]) -> float | None:
    """Largest over median; None for fewer than two values or a median of zero."""
    if len(values) < 2:
        return None
    return ratio(max(values), median(values))


def ratio(largest: float, middle: float) -> float | None:
    """Largest over middle; None where the quotient is not finite."""
    found = largest / middle if middle > 0 else math.inf
    return found if math.isfinite(found) else None


def skew_score(values: Sequence[float]) -> float | None:
    """Mean absolute deviation over the mean, times 100, at most 100 (Flink's FLIP-418); 0 when all are zero."""
    if not values:
        return None
    mean = sum(values) / len(values)
    if mean == 0:
        return 0.0
    return min(100.0, sum([abs(value - mean) for value in values]) / len(values) / mean * 100)


class Skew:
    """The skew of one run's latest batch: totals over its lifetime would hide it."""

    def __init__(self, run: Run, cluster: Cluster) -> None:
        self._run, self._cluster = run, cluster

    @kept
    def ratios(self) -> Mapping[str, tuple[float | None, float | None]]:
        """(max / median, FLIP-418 score) by kind."""
        found: dict[str, tuple[float | None, float | None]] = {}
        if self._run.last is not None:
            read = list(read_by_partition(self._run.last).values())
            if len(read) > 1:
                found["source_partition"] = (skew_ratio(read), skew_score(read))
        stage = self._run.widest_stage
        if stage is not None:
            if stage.records_median > 0:
                found["task_records"] = (ratio(stage.records_max, stage.records_median), stage.records_score)
            if stage.seconds_median > 0:
                found["task_time"] = (ratio(stage.seconds_max, stage.seconds_median), stage.seconds_score)
            shares = self._executor_seconds(stage)
            if len(shares) > 1:
                even = median(shares) or sum(shares) / len(shares)  # most executors did nothing: against an even split
                found["executor"] = (ratio(max(shares), even), skew_score(shares))
        return found

    def _executor_seconds(self, stage: StageSummary) -> Sequence[float]:
        """Task time by executor, 0 for those that could have taken a task of the stage and had none."""
        seconds = {name: share.run_seconds for name, share in stage.executors.items()}
        idle = {each.executor_id for each in self._cluster.executors} - seconds.keys()
        return [*seconds.values(), *[0.0 for _ in sorted(idle)[: max(0, stage.tasks - len(seconds))]]]

    @kept
    def hot_keys(self) -> Sequence[HotKey]:
        """The hottest key of each of the newest batches that observed keys, newest first; needs `instrument`."""
        newest = reversed(self._run.batches[-KEY_BATCHES:])
        return [hot for batch in newest if (hot := hottest_key(batch)) is not None]

    @property
    def hot_key(self) -> HotKey | None:
        """The hottest key of the newest batch that observed keys; None without `ledgerops.instrument`."""
        return self.hot_keys[0] if self.hot_keys else None

    @kept
    def key_column(self) -> str | None:
        """The column that `instrument` observes as the key; None where it does not say."""
        for batch in reversed(self._run.batches[-KEY_BATCHES:]):
            for name, row in batch.observed.items():
                if name.startswith(OBSERVATION) and isinstance(column := row.get("key"), str):
                    return column
        return None
