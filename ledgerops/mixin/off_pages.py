"""Families that no dashboard, alert or runbook asks for, each with the reason, and the expression that asks for one.

Spark reports them, and they answer a question that comes up now and then; a page that is read at night has no place for
them. A family whose own definition says why it is unused is not repeated here.
"""

from collections.abc import Mapping
from typing import Any

from ledgerops.metrics.model import Metric

# reason -> families, without `ledgerops_`
REASONS: Mapping[str, tuple[str, ...]] = {
    "their meaning is known to the connector alone; put them on a page of your own.": (
        "sink_reported_value", "source_reported_value",
    ),
    "the pages show the status and the cause, which say what to do.": ("health_score",),
    "the pages show when a query was last seen, also while it is idle.": ("last_progress_timestamp_seconds",),
    "the pages show the status, and when a query was last heard of.": ("query_terminated_timestamp_seconds",),
    "the pages show the largest over the median, which says the same as a plain ratio.": ("skew_score",),
    "the pages show the load of each executor that is alive.": ("executor_active",),
    "the pages show the load of each executor.": ("executor_active_tasks",),
    "part of the task time; the number of bytes alone shows no fault.": (
        "executor_shuffle_read_bytes_total", "executor_shuffle_write_bytes_total",
    ),
    "a property of the machine, which does not change.": ("host_cpus",),
    "only useful when a leak is suspected.": ("process_open_files", "process_threads", "processes"),
    "the pages show the events that were dropped.": ("listener_events_total",),
    "only useful to choose the size of a recording.": ("recording_bytes_total",),
    "only queries with the HDFS-backed state store have it.": (
        "hdfs_state_cache_hits_total", "hdfs_state_cache_misses_total", "hdfs_state_current_version_bytes",
    ),
    "rare; docs/problems/state-snapshot-lag.md covers snapshots that fail.": (
        "hdfs_state_forced_snapshots_total", "hdfs_state_snapshots_repaired_total", "rocksdb_forced_snapshots_total",
        "rocksdb_snapshots_repaired_total",
    ),
    "only matters right after a start.": (
        "rocksdb_changelog_files_replayed_total", "rocksdb_load_seconds_total", "rocksdb_load_snapshot_seconds_total",
        "rocksdb_loads_from_dfs_total", "rocksdb_replay_changelog_seconds_total",
    ),
    "the pages show the time that it takes.": (
        "rocksdb_compaction_read_bytes_total", "rocksdb_compaction_written_bytes_total",
        "rocksdb_flush_written_bytes_total", "rocksdb_iterator_read_bytes_total", "rocksdb_read_bytes_total",
        "rocksdb_written_bytes_total",
    ),
    "the pages show the task time on state.": (
        "rocksdb_get_seconds_total", "rocksdb_gets_total", "rocksdb_put_seconds_total", "rocksdb_puts_total",
    ),
    "the pages show the commit time that uploads take.": (
        "rocksdb_copied_bytes_total", "rocksdb_files_copied_total", "rocksdb_files_reused_total",
        "rocksdb_zip_uncompressed_bytes",
    ),
    "a small part of the block cache.": ("rocksdb_pinned_blocks_bytes",),
    "only queries with timers have it.": (
        "state_timer_seconds_total", "state_timers_deleted_total", "state_timers_expired_total",
        "state_timers_registered_total",
    ),
}  # fmt: skip
OFF_PAGES: Mapping[str, str] = {f"ledgerops_{name}": why for why, names in REASONS.items() for name in names}


def reason(metric: Metric[Any]) -> str:
    """Why no page asks for a family; empty for one that a page, alert or runbook asks for."""
    return metric.unused or OFF_PAGES.get(metric.name, "")


def question(metric: Metric[Any], of_query: bool) -> str:
    """PromQL that asks for a family: the rate of a counter, the largest value of a gauge, for each of its labels."""
    selector = f'{metric.name}{{app="APP",query="QUERY"}}' if of_query else f'{metric.name}{{app="APP"}}'
    labels = ", ".join(("app", "query" if of_query else "instance", *metric.labels))
    if metric.kind == "counter":
        return f"sum by ({labels}) (rate({selector}[5m]))"
    return f"max by ({labels}) ({selector})"
