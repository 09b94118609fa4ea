"""What is known of a query that bears on its capacity."""

from collections.abc import Sequence
from typing import Any

from ledgerops.analysis.capacity.fit import Fit, fit
from ledgerops.analysis.capacity.situation import Situation
from ledgerops.analysis.capacity.stages import Stages
from ledgerops.diagnosis.batch_parts import PARTS
from ledgerops.model.records import StageSummary, TaskSummary
from tests.diagnosis.conftest import stage as plain_stage

OVERHEAD, RATE = 0.4, 5000.0


def exact_line(largest: int = 4000) -> Fit:
    """Batches that follow the line to the letter, so that the interval has no width."""
    rows = [largest // 10 * n for n in range(1, 11)]
    line = fit(rows, [OVERHEAD + n / RATE for n in rows])
    assert not isinstance(line, str)
    return line


def stage(
    tasks: Sequence[float], wall: float | None = None, records: Sequence[int] | None = None, shuffle: bool = True
) -> StageSummary:
    """A stage by the seconds of each task and what each read."""
    return plain_stage(records=records or [100] * len(tasks), seconds=tasks, shuffle=shuffle, wall=wall)


def stages(
    *each: StageSummary, cores: int | None = 2, stateful: bool = True, overhead: float = 0.0, slope: float = 1.0
) -> Stages:
    """The same stages in three batches; `overhead` and `slope` are the shares of them that pass in tasks."""
    batches = tuple(TaskSummary("run-1", number, each) for number in range(3))
    return Stages(batches, cores, stateful, overhead, slope)


def situation(**changes: Any) -> Situation:
    """A query whose batches take 0.4 s and a second for each 5,000 rows."""
    values: dict[str, Any] = {
        "query": "daily_counts", "freshness": 60.0, "trigger": 2.0, "arrival": 1000.0, "backlog": 0.0,
        "lag": 0.0, "fit": exact_line(), "stages": stages(stage([0.4] * 8, wall=1.6)),
        "parts": {"query_planning": 0.3, "driver_before": 0.05, "after_tasks": 0.05, "cpu": 0.4},
    }  # fmt: skip
    made = Situation(**{**values, **changes})
    assert made.parts.keys() <= set(PARTS)  # a part that no profile has would prove nothing
    return made
