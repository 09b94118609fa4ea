"""Whatever a record repeats, the time that a diagnosis takes grows with it, and not with its square.

A line of 4.5 MB with 20,000 sources once held `diagnose` for minutes.
"""

import time
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import orjson
import pytest

from ledgerops.analysis.session import Investigation
from ledgerops.diagnosis.engine import Diagnoser
from ledgerops.metrics.self_watch import SelfStats
from ledgerops.model.records import Observation
from ledgerops.model.spark_progress import format_instant
from ledgerops.runtime.registry import QueryRegistry
from ledgerops.runtime.snapshot import QuerySnapshot
from tests.build import T0, spark_json
from tests.diagnosis.conftest import stage

RECORDS = 3
TIMES = 4  # as large
MAX_TIMES = 9.0  # as long: a square takes 16 times
SLACK_SECONDS = 0.02
OPERATOR = {
    "operatorName": "stateStoreSave", "numRowsTotal": 5, "numRowsUpdated": 1, "numRowsRemoved": 0,
    "memoryUsedBytes": 100, "commitTimeMs": 1, "numShufflePartitions": 2,
}  # fmt: skip
STAGE = asdict(stage(began=T0))


def one_source(**changes: Any) -> dict[str, Any]:
    return {**spark_json()["sources"][0], **changes}


def offsets(heads: dict[str, dict[str, int]]) -> dict[str, Any]:
    return one_source(startOffset=heads, endOffset=heads, latestOffset=heads)


PROGRESS: dict[str, Callable[[int], dict[str, Any]]] = {
    "equal sources": lambda n: {"sources": [one_source() for _ in range(n)]},
    "sources": lambda n: {"sources": [offsets({f"t{i}": {"0": i}}) for i in range(n)]},
    "partitions": lambda n: {"sources": [offsets({"t": {str(i): i for i in range(n)}})]},
    "topics": lambda n: {"sources": [offsets({f"t{i}": {"0": i} for i in range(n)})]},
    "operators": lambda n: {"stateOperators": [OPERATOR] * n},
    "metrics of a state": lambda n: {"stateOperators": [{**OPERATOR, "customMetrics": {f"m{i}": i for i in range(n)}}]},
    "metrics of a source": lambda n: {"sources": [one_source(metrics={f"m{i}": "1" for i in range(n)})]},
    "observed metrics": lambda n: {"observedMetrics": {f"m{i}": {"a": i} for i in range(n)}},
    "columns of an observed metric": lambda n: {"observedMetrics": {"m": {f"c{i}": i for i in range(n)}}},
    "parts of the time": lambda n: {"durationMs": {"triggerExecution": 900, **{f"p{i}": 1 for i in range(n)}}},
    "letters of a name": lambda n: {"name": "q" * 10 * n},
    "letters of a source": lambda n: {"sources": [one_source(description="KafkaV2[Subscribe[" + "t," * 10 * n)]},
    "letters of a sink": lambda n: {"sink": {"description": "S[" * 10 * n}},
}
RUN = {"run_id": spark_json()["runId"], "batch_id": 8}
OTHERS: dict[str, Callable[[int], tuple[str, dict[str, Any]]]] = {
    "stages": lambda n: ("tasks", {**RUN, "stages": [{**STAGE, "stage_id": i, "executors": {}} for i in range(n)]}),
    "executors of a stage": lambda n: (
        "tasks",
        {**RUN, "stages": [{**STAGE, "stage_id": 1, "executors": {
            str(i): {"tasks": 1, "run_seconds": 1.0, "records": 1} for i in range(n)}}]},
    ),
    "partitions that were asked for": lambda n: (
        "offsets",
        {"run_id": RUN["run_id"], "latest": {"t": {str(i): i for i in range(n)}}, "earliest": {}},
    ),
    "causes of an exception": lambda n: (
        "terminated",
        {"id": "i", "runId": RUN["run_id"], "exception": "x.E: a\nCaused by: y.F: b=c\n" * n},
    ),
    "letters of an exception": lambda n: (
        "terminated",
        {"id": "i", "runId": RUN["run_id"], "exception": "password=" * 10 * n},
    ),
}  # fmt: skip


def recorded(changes: dict[str, Any], other: tuple[str, dict[str, Any]] | None) -> list[Observation]:
    found = []
    for number in range(RECORDS):
        at = T0 + 2.0 * number
        progress = spark_json(batchId=7 + number, timestamp=format_instant(at))
        found.append(Observation(at + 1.0, "progress", None, {**progress, **changes}))
    if other is not None:
        found.append(Observation(at + 1.5, other[0], None, other[1]))  # type: ignore[arg-type]
    return found


def live_seconds(seen: list[Observation]) -> float:
    """CPU seconds of what the observer of a running query does with these records."""
    began = time.process_time()
    registry = QueryRegistry(Diagnoser)
    stats = SelfStats()
    for each in seen:
        state = registry.ingest(each)
        if state is not None:
            registry.judge(state, each.at)
            view = registry.view(state, each.at)
            assert QuerySnapshot(state, view, 2_000, lambda part, error: stats.error(part)).exported
    return time.process_time() - began


def offline_seconds(seen: list[Observation], folder: Any) -> float:
    """CPU seconds of `ledgerops diagnose --html` of a recording."""
    file = folder / "recording-000001.jsonl"
    lines = [{"at": format_instant(each.at), "kind": each.kind, "query": None, "data": each.data} for each in seen]
    file.write_bytes(b"".join(orjson.dumps(line) + b"\n" for line in lines))
    began = time.process_time()
    asked = Investigation(str(file), with_timeline=True, plots=True)
    asked.page(asked.diagnose(T0 + 60.0))
    return time.process_time() - began


CASES = [pytest.param(make, None, id=name) for name, make in PROGRESS.items()] + [
    pytest.param(None, make, id=name) for name, make in OTHERS.items()
]


def made(progress, other, size):
    return recorded(progress(size) if progress else {}, other(size) if other else None)


@pytest.mark.parametrize(("progress", "other"), CASES)
def test_the_time_grows_with_the_size_of_a_record_only(progress, other, tmp_path):
    for seconds in (live_seconds, lambda seen: offline_seconds(seen, tmp_path)):
        small = min(seconds(made(progress, other, 250)) for _ in range(3))
        large = min(seconds(made(progress, other, 250 * TIMES)) for _ in range(2))

        assert large < MAX_TIMES * small + SLACK_SECONDS
