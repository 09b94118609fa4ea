"""What the observer's own code costs, without Spark: scrape, memory, replay, start-up. `growth` has the events.

The records are synthetic but whole: a stateful query with RocksDB metrics and five source partitions.
"""

import itertools
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import orjson

from ledgerops.diagnosis.engine import Diagnoser
from ledgerops.metrics.self_watch import SelfStats
from ledgerops.metrics.state import CUSTOM
from ledgerops.model.recording import decode, encode
from ledgerops.model.records import (
    Executor,
    ExecutorShare,
    Host,
    ObservationKind,
    Plan,
    Process,
    StageSummary,
    TaskSummary,
)
from ledgerops.model.spark_progress import format_instant
from ledgerops.runtime import exposition
from ledgerops.runtime.registry import QueryRegistry
from ledgerops.runtime.replay import replay
from ledgerops.runtime.snapshot import QuerySnapshot, Snapshot, published
from ledgerops.runtime.status import status_document
from load.bench.lines import Line, least, limit

T = TypeVar("T")
Given = TypeVar("Given")

T0 = 1_800_000_000.0
PARTITIONS = 5
WIDE_PARTITIONS = 80  # of a source, with which 50 queries have 10,000 series and more
SAMPLE_EVERY_BATCHES = 5  # of the machine and the broker
ROCKSDB = [row[0] for row in CUSTOM if row[0].startswith("rocksdb")]


def progress(query: int, batch: int, partitions: int = PARTITIONS, at: float | None = None) -> bytes:
    """One batch's JSON of query number `query`: 2,000 rows or so in 0.8 s, healthy; at a 2 s trigger without `at`."""
    rows = 1800 + (batch * 37 + query * 11) % 400
    each = 2000 // partitions
    read = {"transactions": {str(p): batch * each + p for p in range(partitions)}}
    end = {"transactions": {str(p): (batch + 1) * each + p for p in range(partitions)}}
    at = T0 + 2 * batch if at is None else at
    return orjson.dumps(
        {
            "id": f"id-{query:04}",
            "runId": f"run-{query:04}",
            "name": f"query_{query:03}",
            "timestamp": format_instant(at),
            "batchId": batch,
            "batchDuration": 800,
            "numInputRows": rows,
            "inputRowsPerSecond": rows / 2,
            "processedRowsPerSecond": rows / 0.8,
            "durationMs": {
                "addBatch": 500 + rows // 10,
                "commitOffsets": 40,
                "getBatch": 0,
                "latestOffset": 3,
                "queryPlanning": 30,
                "triggerExecution": 620 + rows // 10,
                "walCommit": 40,
            },
            "eventTime": {
                "avg": format_instant(at - 1),
                "max": format_instant(at),
                "min": format_instant(at - 3),
                "watermark": format_instant(at - 62),
            },
            "stateOperators": [_state_operator(batch)],
            "sources": [
                {
                    "description": "KafkaV2[Subscribe[transactions]]",
                    "startOffset": read,
                    "endOffset": end,
                    "latestOffset": end,
                    "numInputRows": rows,
                    "inputRowsPerSecond": rows / 2,
                    "processedRowsPerSecond": rows / 0.8,
                }
            ],
            "sink": {"description": "FileSink[file:/out]", "numOutputRows": 1500},
            "observedMetrics": {},
        }
    )


def _state_operator(batch: int) -> dict[str, Any]:
    return {
        "operatorName": "stateStoreSave",
        "numRowsTotal": 4500,
        "numRowsUpdated": 1500,
        "allUpdatesTimeMs": 60,
        "numRowsRemoved": 1500,
        "allRemovalsTimeMs": 10,
        "commitTimeMs": 90,
        "memoryUsedBytes": 1_700_000,
        "numRowsDroppedByWatermark": 0,
        "numShufflePartitions": 2,
        "numStateStoreInstances": 2,
        "customMetrics": {
            **{name: (batch + index) % 900 for index, name in enumerate(ROCKSDB)},
            "SnapshotLastUploaded.partition_0_default": batch,
            "SnapshotLastUploaded.partition_1_default": batch,
        },
    }


def around(batch: int, partitions: int, query: int = 0) -> Iterator[tuple[ObservationKind, bytes]]:
    """What the collectors add after a batch: the plan, the tasks, the machine, and the broker's heads."""
    run, at = f"run-{query:04}", T0 + 2 * batch
    if batch == 0:
        plan = Plan(run, "processing_time", 2.0, "append", {"event_time": 60.0}, True, 2, ("customer_id",), "parquet")
        yield "plan", orjson.dumps(plan)
    stages = [_stage(2 * batch, at + 0.1, 5, False), _stage(2 * batch + 1, at + 0.4, 2, True)]
    yield "tasks", orjson.dumps(TaskSummary(run, batch, tuple(stages), 0.2))
    if batch % SAMPLE_EVERY_BATCHES == 0:
        executor = Executor("driver", True, 2, 0, 0, batch * 7, batch * 0.9, batch * 0.01, 2**27, 2**29, 2**28)
        processes = [
            Process("driver_jvm", batch * 0.8, 2**30, 80, 200),
            Process("python_workers", batch * 0.2, 2**28, 4, 9),
        ]
        yield "host", orjson.dumps(Host(at, 2, 0.5, 2**33, 2**32, 2**36, 2**35, tuple(processes), (executor,)))
        heads = {"transactions": {str(p): (batch + 1) * (2000 // partitions) + p for p in range(partitions)}}
        oldest = {"transactions": {str(p): 0 for p in range(partitions)}}
        kept = {"transactions": 7 * 86400.0}
        data = {"run_id": run, "latest": heads, "earliest": oldest, "retention_seconds": kept}
        yield "offsets", orjson.dumps(data)


def _stage(number: int, began: float, tasks: int, shuffle: bool) -> StageSummary:
    return StageSummary(
        stage_id=number, name="start at NativeMethodAccessorImpl.java:0", tasks=tasks, failed_tasks=0, started=began,
        ended=began + 0.25, run_seconds=0.4, cpu_seconds=0.3, gc_seconds=0.01, seconds_median=0.4 / tasks,
        seconds_max=0.5 / tasks, records=2000, records_median=2000 / tasks, records_max=2200 / tasks,
        reads_shuffle=shuffle, input_bytes=100_000, shuffle_read_bytes=80_000, shuffle_write_bytes=80_000,
        spill_bytes=0, executors={"driver": ExecutorShare(tasks, 0.4)}, records_score=5.0, seconds_score=8.0,
    )  # fmt: skip


def lines(queries: int, batches: int) -> Iterator[bytes]:
    """A recording of so many queries and batches, in the order of time."""
    for batch in range(batches):
        for query in range(queries):
            data = progress(query, batch)
            yield encode(T0 + 2 * batch + 0.9, "progress", f"query_{query:03}", data)


def _fail(name: str, error: Exception) -> None:
    raise AssertionError(f"{name} failed") from error


def core(say: Callable[[str], None]) -> Iterator[Line]:
    """The budgets that need no Spark."""
    for kind, (series, size, took) in scrape().items():
        name = f"scrape, 50 queries, {series:,} series, {size / 1e6:.1f} MB, {kind}"
        yield limit(name, took, f"{took:.0f} ms", 60, "<= 60 ms")
    shown = live_view()
    yield Line("the live view's document, each of 50 queries with an hour behind it", f"{shown:.2f} ms")
    grown = memory()
    say("memory measured")
    name = "memory of the observer, 50 queries, an hour at a batch every 2 s"
    yield limit(name, grown * 1.048576, f"{grown:.0f} MiB", 60, "<= 60 MB")
    speed = replayed()
    yield least("replay with all rules at every batch", speed, f"{speed:,.0f} batches/s", 1000, ">= 1,000")
    hour = diagnosed(1, runs=3)
    yield limit("`ledgerops diagnose`, start to answer, an hour of one query", hour, f"{hour:.2f} s", 1, "< 1 s")
    yield Line("the same of a day, 43,200 batches", f"{diagnosed(24):.1f} s")
    help_ = start_up()
    yield limit("`ledgerops --help`", help_, f"{help_:.2f} s", 0.3, "< 0.3 s")


def scrape(queries: int = 50) -> dict[str, tuple[int, int, float]]:
    """By format: series, bytes and median milliseconds of one scrape, for 10,000 series or a few more, after a batch of
    each query."""
    registry, snapshots = QueryRegistry(Diagnoser), dict[str, QuerySnapshot]()
    batches = itertools.count()

    def change() -> Snapshot:
        batch = next(batches)
        for query in range(queries):
            at = T0 + 2 * batch
            state = registry.ingest(decode(encode(at, "progress", None, progress(query, batch, WIDE_PARTITIONS))))
            assert state is not None
            registry.judge(state, at)
            snapshots[state.history.query] = QuerySnapshot(state, registry.view(state, at), 500, _fail)
        return Snapshot(at, snapshots)

    for _ in range(12):
        snapshot = change()
    series = sum(family.size for each in snapshot.exported.values() for family in each.families.values())
    found = {}
    for kind, accept in (("text", "text/plain"), ("OpenMetrics", "application/openmetrics-text;version=1.0.0")):
        took, body = median_ms(partial(scraped, accept=accept), time.perf_counter, change)
        found[kind] = (series, len(body), took)
    return found


def scraped(snapshot: Snapshot, accept: str = "text/plain") -> bytes:
    """The answer to a scrape."""
    families = published(snapshot, SelfStats(), app="bench")
    return exposition.render(families, snapshot.at + 1, exposition.accepted(accept))


def median_ms(
    work: Callable[[Given], T], clock: Callable[[], float], before: Callable[[], Given], times: int = 15
) -> tuple[float, T]:
    """Milliseconds by the clock that `work` takes with what `before` has made, which is not timed: the median of so
    many times, and what the last one gave."""
    took = []
    for _ in range(times):
        given = before()
        began = clock()
        result = work(given)
        took.append((clock() - began) * 1000)
    return statistics.median(took), result


def live_view(queries: int = 50, batches: int = 1800) -> float:
    """Milliseconds of a core that the document behind the live view takes for each query, the median of 15."""
    registry, _ = fill(queries, batches)
    took, _ = median_ms(lambda known: status_document(known, T0 + 2 * batches), time.thread_time, lambda: registry)
    return took / queries


def replayed(batches: int = 3000) -> float:
    """Batches a second of this thread's time through decode, ingest and all rules at every batch."""
    recorded = list(lines(1, batches))
    began = time.thread_time()
    done = replay(decode(line) for line in recorded)
    took = time.thread_time() - began
    [state] = done.registry.queries.values()
    assert state.verdict is not None and state.verdict.attribution
    return batches / took


def memory(queries: int = 50, batches: int = 1800) -> float:
    """MiB that histories, verdicts and snapshots of an hour at a batch every 2 s add to a fresh process."""
    code = (
        "import psutil\n"  # the peak that getrusage gives is inherited from the parent
        "from load.bench.core import fill\n"
        "before = psutil.Process().memory_info().rss\n"
        f"kept = fill({queries}, {batches})\n"
        "print((psutil.Process().memory_info().rss - before) / 2**20)\n"
    )
    return float(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout)


def fill(queries: int, batches: int) -> tuple[QueryRegistry, Snapshot]:
    """A registry with its snapshots, as the worker holds them."""
    registry = QueryRegistry(Diagnoser)
    snapshots = {}
    for line in lines(queries, batches):
        seen = decode(line)
        state = registry.ingest(seen)
        assert state is not None
        if seen.at > T0 + 2 * (batches - 3):  # the rules' cost is measured elsewhere; their memory is the last verdict
            registry.judge(state, seen.at)
            snapshots[state.history.query] = QuerySnapshot(state, registry.view(state, seen.at), 500, _fail)
    snapshot = Snapshot(T0, snapshots)
    assert snapshot.exported
    return registry, snapshot


def diagnosed(hours: int, runs: int = 1) -> float:
    """Seconds from the start of `ledgerops diagnose` to its answer on so many hours of one query, best of `runs`."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "recording.jsonl"
        path.write_bytes(b"".join(lines(1, 1800 * hours)))
        return min(_seconds("diagnose", str(path)) for _ in range(runs))


def start_up() -> float:
    """Seconds of `ledgerops --help`, best of five."""
    return min(_seconds("--help") for _ in range(5))


def _seconds(*arguments: str) -> float:
    began = time.perf_counter()
    command = [sys.executable, "-m", "ledgerops", *arguments]
    done = subprocess.run(command, capture_output=True, check=False, env=installed())
    assert done.returncode in (0, 1), done.stderr.decode()
    return time.perf_counter() - began


def installed() -> dict[str, str]:
    """The environment of a command whose compiled modules are kept, as those of an installed package are."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
