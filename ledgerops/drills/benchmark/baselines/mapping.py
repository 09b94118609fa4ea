"""From a metric that stands out to the causes that it speaks for: one table for every method that ranks metrics.

It is generous: a part of a batch, which only ledgerops measures, points to the cause that owns it, and a metric may
name two causes. The first pattern that fits counts. Metrics that fit none, such as the number of threads, name nothing
and cost nothing: the ranking is read on until ten metrics have named something.
"""

import re
from collections.abc import Iterable
from itertools import islice
from typing import Literal, NamedTuple

TOP = 10  # metrics that name causes
Direction = Literal["up", "down", "any"]


class Entry(NamedTuple):
    """A pattern of a metric with its labels, the direction in which it must have moved, and what it then names."""

    pattern: str
    direction: Direction
    causes: tuple[str, ...]


def _part(names: str, *causes: str) -> Entry:
    return Entry(rf'^ledgerops_batch_part_seconds\{{part="({names})"', "up", causes)


MAPPING = (
    # parts of a batch, phases
    _part("python", "python-bound"),
    _part("sink_wait|after_tasks|driver_waits", "slow-sink", "intermittent-sink"),
    _part("source_wait|latest_offset|get_batch", "slow-source"),
    _part("query_planning|driver_before|driver_between", "small-batch-overhead"),
    _part("many_tasks|launch", "too-many-tasks", "small-batch-overhead"),
    _part("retries", "task-retries"),
    _part("failed_statements", "statement-retries"),
    _part("few_rows", "small-batch-overhead", "too-many-tasks"),
    _part("table_scan", "table-scan"),
    _part("uneven_keys", "key-skew"),
    _part("uneven_source", "source-partition-skew"),
    _part("uneven_task", "straggler"),
    _part("uneven_executors", "scheduler-skew"),
    _part("gc", "gc-pressure"),
    _part("spill", "memory-spill"),
    _part("state_commit", "state-commit-slow"),
    _part("state_stall", "rocksdb-stall"),
    _part("state_update", "unbounded-state", "state-growth"),
    _part("wal_commit|commit_offsets", "checkpoint-slow"),
    _part("other_queries", "noisy-neighbour"),
    _part("other_processes|cpu_limit", "cpu-saturated"),
    _part("cpu|shuffle|waiting", "input-overload"),
    Entry(r'phase="(latest_offset|get_batch)"', "up", ("slow-source",)),
    Entry(r'phase="query_planning"', "up", ("small-batch-overhead",)),
    Entry(r'phase="(wal_commit|commit_offsets)"', "up", ("checkpoint-slow",)),
    Entry(r'phase="add_batch"', "up", ("slow-sink", "input-overload")),
    # what the source, the query, and the clock of its events say
    Entry(r"^ledgerops_source_reachable", "down", ("source-unreachable",)),
    Entry(r"query_failures|error_class", "up", ("query-failed", "crash-loop")),
    Entry(r"query_restarts", "up", ("crash-loop", "query-failed")),
    Entry(r"^ledgerops_query_active|^up$", "down", ("query-failed", "crash-loop")),
    Entry(r"batch_running_seconds", "up", ("query-stuck", "slow-sink")),
    Entry(r"batches_total|batch_duration_seconds_count|busy_ratio", "down", ("query-stuck", "input-stopped")),
    Entry(r"rows_dropped_by_watermark", "up", ("late-data", "watermark-jump")),
    Entry(r"watermark_lag", "up", ("watermark-stalled",)),
    Entry(r"watermark_lag", "down", ("watermark-jump",)),
    Entry(r"rejected_rows", "up", ("data-loss",)),
    Entry(r"retention_headroom", "down", ("retention-risk", "rate-limited")),
    Entry(r"conflicting_rows", "up", ("conflicting-duplicates",)),
    Entry(r"unbalanced_", "up", ("ledger-imbalance",)),
    Entry(r"(input|arrival)_rows|input_rows_total|inputRate", "down", ("input-stopped", "rate-limited")),
    Entry(r"(input|arrival)_rows|input_rows_total|inputRate|pressure_ratio", "up", ("input-overload",)),
    Entry(r"backlog|_lag_seconds|unread_|file_age", "up", ("input-overload", "rate-limited")),
    Entry(r"source_batch_files", "up", ("many-small-files", "input-overload")),
    Entry(r'skew_(ratio|score)\{kind="partition', "up", ("source-partition-skew",)),
    Entry(r'skew_(ratio|score)\{kind="[a-z_]*records', "up", ("key-skew", "source-partition-skew")),
    Entry(r'skew_(ratio|score)\{kind="[a-z_]*(time|seconds)', "up", ("straggler", "key-skew")),
    Entry(r"hot_key_share", "up", ("key-skew",)),
    # state, memory, executors, machine
    Entry(r"rocksdb_writer_stall|rocksdb_compaction_seconds", "up", ("rocksdb-stall",)),
    Entry(r"state_removed_rows|state_removal_seconds", "up", ("eviction-storm", "watermark-jump")),
    Entry(r"state_commit_seconds|rocksdb_commit", "up", ("state-commit-slow",)),
    Entry(r"state_(rows|memory|update)|states_(rows|used)", "up", ("unbounded-state", "state-growth")),
    Entry(r"_gc_seconds|GCTime|heap|JVMHeap", "up", ("gc-pressure",)),
    Entry(r"[sS]pill", "up", ("memory-spill",)),
    Entry(r"executor_active\b|executor_removed|numActive|executor_cores", "any", ("executor-lost", "scheduler-skew")),
    Entry(r"executor_failed_tasks|failedTasks", "up", ("query-failed", "executor-lost")),
    Entry(r"executor_tasks_total|completedTasks|stage.*waiting", "up", ("too-many-tasks", "small-batch-overhead")),
    Entry(r'kind="python_workers?"|^ledgerops_processes|ProcessTreePython', "up", ("python-bound",)),
    Entry(r"host_(cpu|runnable)", "up", ("cpu-saturated", "noisy-neighbour")),
    Entry(r"process_cpu|executor_run|cpuTime|totalDuration", "up", ("input-overload", "cpu-saturated")),
    Entry(r"batch_overhead_seconds", "up", ("small-batch-overhead", "too-many-tasks")),
    Entry(r"batch_duration|latency|triggerExecution", "up", ("slow-sink", "input-overload")),
    Entry(r"(processed_rows|capacity|processingRate|output_rows)", "down", ("slow-sink", "input-overload")),
)  # fmt: skip


def causes_of(ranked: Iterable[tuple[str, float]]) -> tuple[str, ...]:
    """The causes that ranked metrics name, each once. A metric comes with how far it moved: its sign counts."""
    entries = (next((entry for entry in MAPPING if _fits(entry, name, moved)), None) for name, moved in ranked)
    named = islice((entry.causes for entry in entries if entry is not None), TOP)
    return tuple(dict.fromkeys(cause for causes in named for cause in causes))


def _fits(entry: Entry, name: str, moved: float) -> bool:
    way = "up" if moved > 0 else "down" if moved < 0 else ""
    return entry.direction in ("any", way) and re.search(entry.pattern, name) is not None
