"""Builders of records for tests: only what a case is about is given, the rest is plain and healthy."""

from typing import Any

from ledgerops.model.history import History
from ledgerops.model.records import Partition, Progress, SourceProgress, StateOperator
from ledgerops.model.spark_progress import format_instant

T0 = 1_800_000_000.0  # a round instant to count from


def source(
    rows: int = 100,
    start: dict[Partition, int] | None = None,
    end: dict[Partition, int] | None = None,
    latest: dict[Partition, int] | None = None,
    name: str = "transactions",
) -> SourceProgress:
    return SourceProgress(name, name, rows, start or {}, end or {}, latest if latest is not None else end or {}, {})


def operator(**changes: Any) -> StateOperator:
    values: dict[str, Any] = {
        "name": "stateStoreSave",
        "rows": 10,
        "updated": 5,
        "removed": 0,
        "update_seconds": 0.1,
        "removal_seconds": 0.0,
        "commit_seconds": 0.2,
        "memory_bytes": 1000,
        "dropped_rows": 0,
        "shuffle_partitions": 2,
        "custom": {},
        "snapshot_versions": {},
    }
    return StateOperator(**{**values, **changes})


def batch(number: int = 0, **changes: Any) -> Progress:
    """Batch `number` of a query with a 2 s trigger: 100 rows in 0.5 s."""
    values: dict[str, Any] = {
        "query": "daily_counts",
        "query_id": "id-1",
        "run_id": "run-1",
        "batch_id": number,
        "started": T0 + 2.0 * number,
        "duration": 0.5,
        "rows": 100,
        "phases": {"add_batch": 0.4, "query_planning": 0.05, "wal_commit": 0.03, "commit_offsets": 0.02},
        "sources": (source(),),
        "operators": (),
        "sink": "FileSink",
        "output_rows": 100,
        "watermark": None,
        "event_time_min": None,
        "event_time_avg": None,
        "event_time_max": None,
        "observed": {},
    }
    return Progress(**{**values, **changes})


def stream(heads: list[int], ends: list[int], seconds: float = 2.0, **changes: Any) -> list[Progress]:
    """Batches of one partition, one every `seconds`, with the given heads and consumed offsets after each."""
    partition = ("transactions", "0")
    batches = []
    start = 0
    for number, (head, end) in enumerate(zip(heads, ends, strict=True)):
        read = source(end - start, {partition: start}, {partition: end}, {partition: head})
        batches.append(batch(number, started=T0 + seconds * number, rows=end - start, sources=(read,), **changes))
        start = end
    return batches


def history(batches: list[Progress], query: str = "daily_counts") -> History:
    remembered = History(query)
    remembered.start(batches[0].started if batches else T0, "id-1", "run-1")
    for each in batches:
        remembered.add(each)
    return remembered


def spark_json(**changes: Any) -> dict[str, Any]:
    """A progress record as Spark's listener writes it."""
    values: dict[str, Any] = {
        "id": "9f0d1c3e-0000-4000-8000-000000000001",
        "runId": "9f0d1c3e-0000-4000-8000-000000000002",
        "name": "daily_counts",
        "timestamp": format_instant(T0),
        "batchId": 7,
        "batchDuration": 900,
        "numInputRows": 300,
        "inputRowsPerSecond": 150.0,
        "processedRowsPerSecond": 333.3,
        "durationMs": {"addBatch": 700, "queryPlanning": 100, "triggerExecution": 900, "walCommit": 50},
        "stateOperators": [],
        "sources": [
            {
                "description": "KafkaV2[Subscribe[transactions]]",
                "startOffset": {"transactions": {"0": 100, "1": 200}},
                "endOffset": {"transactions": {"0": 200, "1": 400}},
                "latestOffset": {"transactions": {"0": 250, "1": 400}},
                "numInputRows": 300,
            }
        ],
        "sink": {"description": "FileSink[file:/out]", "numOutputRows": 300},
    }
    return {**values, **changes}
