"""What is said of a query that has nothing to read, ends by itself, or has ended."""

import pytest

from ledgerops.diagnosis.engine import Diagnoser
from ledgerops.metrics.verdict import FINDING, ROOT_CAUSE
from ledgerops.model.records import Observation
from ledgerops.model.spark_progress import format_instant
from ledgerops.runtime.registry import QueryRegistry
from tests.build import T0, spark_json


def overrun(plan):
    """A registry in which ten batches, each longer than the one before, outlast their interval of 2 s; and when."""
    registry = QueryRegistry(Diagnoser)
    registry.ingest(Observation(T0, "plan", "daily_counts", {"run_id": spark_json()["runId"], **plan}))
    at = T0
    for number in range(10):
        seconds = 6 + 3 * number
        data = spark_json(
            batchId=number,
            timestamp=format_instant(at),
            numInputRows=1000 * (number + 1),
            durationMs={"triggerExecution": seconds * 1000, "addBatch": seconds * 900},
        )
        at += seconds
        state = registry.ingest(Observation(at, "progress", None, data))
        assert state is not None
        registry.judge(state, at)
    return registry, state, at


def event(kind, at, **data):
    run = {"runId": spark_json()["runId"], "id": spark_json()["id"], "timestamp": format_instant(at)}
    return Observation(at, kind, "daily_counts", {**run, **data})


def test_findings_clear_when_the_query_has_worked_everything_off():
    registry, state, at = overrun({"trigger": "processing_time", "trigger_interval": 2.0})
    assert state.verdict.findings
    registry.ingest(event("idle", at + 10))
    verdict = registry.judge(state, at + 11)
    assert (verdict.status, verdict.findings) == ("idle", ())


def test_a_run_that_works_off_what_is_there_and_ends_does_not_fall_behind():
    _, state, _ = overrun({"trigger": "available_now", "trigger_interval": None})
    assert state.verdict.findings == ()


@pytest.mark.parametrize("metric", [FINDING, ROOT_CAUSE], ids=lambda metric: metric.name)
def test_the_failure_of_a_query_is_a_series_after_its_end(metric):
    registry, state, at = overrun({"trigger": "available_now"})
    registry.ingest(event("terminated", at + 1, exception="boom", errorClassOnException="USER_RAISED_EXCEPTION"))
    verdict = registry.judge(state, at + 2)
    assert any("query-failed" in labels for labels in metric.read(verdict))
    assert metric.survives
