"""`situation` builds what is known of a query whose batches take 0.4 s and a second for each 5,000 rows."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from ledgerops.analysis.capacity.fit import Fit, fit
from ledgerops.analysis.capacity.situation import Situation
from ledgerops.analysis.capacity.stages import Stages
from ledgerops.diagnosis.batch_parts import PARTS
from ledgerops.model.records import ExecutorShare, StageSummary, TaskSummary
from tests.build import T0

OVERHEAD, RATE = 0.4, 5000.0
MakeSituation = Callable[..., Situation]


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
    read = [100] * len(tasks) if records is None else list(records)
    return StageSummary(
        stage_id=1, name="save", tasks=len(tasks), failed_tasks=0, started=T0,
        ended=T0 + (max(tasks) if wall is None else wall), run_seconds=sum(tasks), cpu_seconds=sum(tasks),
        gc_seconds=0.0, seconds_median=sorted(tasks)[len(tasks) // 2], seconds_max=max(tasks), records=sum(read),
        records_median=sorted(read)[len(read) // 2], records_max=max(read), reads_shuffle=shuffle, input_bytes=0,
        shuffle_read_bytes=0, shuffle_write_bytes=0, spill_bytes=0,
        executors={"driver": ExecutorShare(len(tasks), sum(tasks), sum(read))},
    )  # fmt: skip


def stages(
    *each: StageSummary, cores: int | None = 2, stateful: bool = True, overhead: float = 0.0, slope: float = 1.0
) -> Stages:
    """The same stages in three batches; `overhead` and `slope` are the shares of them that pass in tasks."""
    batches = tuple(TaskSummary("run-1", number, each) for number in range(3))
    return Stages(batches, cores, stateful, overhead, slope)


@pytest.fixture
def situation() -> MakeSituation:
    def make(**changes: Any) -> Situation:
        values: dict[str, Any] = {
            "query": "daily_counts", "at": T0, "freshness": 60.0, "trigger": 2.0, "arrival": 1000.0, "backlog": 0.0,
            "lag": 0.0, "fit": exact_line(), "stages": stages(stage([0.4] * 8, wall=1.6)),
            "parts": {"query_planning": 0.3, "driver_before": 0.05, "after_tasks": 0.05, "cpu": 0.4},
        }  # fmt: skip
        made = Situation(**{**values, **changes})
        assert made.parts.keys() <= set(PARTS)  # a part that no profile has would prove nothing
        return made

    return make
