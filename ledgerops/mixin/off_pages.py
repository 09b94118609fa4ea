"""Families that no dashboard, alert or runbook asks for, each with the reason, and the expression that asks for one.

Spark reports them, and they answer a question that comes up now and then; a page that is read at night has no place for
them. A family whose own definition says why it is unused is not repeated here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ledgerops.metrics.model import Metric

LEAK = "only useful when a leak is suspected."
SHUFFLE = "part of the task time; the number of bytes alone shows no fault."
HDFS = "only queries with the HDFS-backed state store have it."
REPAIR = "rare; docs/problems/state-snapshot-lag.md covers snapshots that fail."
TIMERS = "only queries with timers have it."
BYTES = "the pages show the time that it takes."
FILES = "the pages show the commit time that uploads take."
LOADING = "only matters right after a start."

CONNECTOR = "their meaning is known to the connector alone; put them on a page of your own."

OFF_PAGES: Mapping[str, str] = {
    "ledgerops_sink_reported_value": CONNECTOR,
    "ledgerops_source_reported_value": CONNECTOR,
    "ledgerops_health_score": "the pages show the status and the cause, which say what to do.",
    "ledgerops_last_progress_timestamp_seconds": "the pages show when a query was last seen, also while it is idle.",
    "ledgerops_query_terminated_timestamp_seconds": "the pages show the status, and when a query was last heard of.",
    "ledgerops_skew_score": "the pages show the largest over the median, which says the same as a plain ratio.",
    "ledgerops_executor_active": "the pages show the load of each executor that is alive.",
    "ledgerops_executor_active_tasks": "the pages show the load of each executor.",
    "ledgerops_executor_shuffle_read_bytes_total": SHUFFLE,
    "ledgerops_executor_shuffle_write_bytes_total": SHUFFLE,
    "ledgerops_host_cpus": "a property of the machine, which does not change.",
    "ledgerops_process_open_files": LEAK,
    "ledgerops_process_threads": LEAK,
    "ledgerops_processes": LEAK,
    "ledgerops_listener_events_total": "the pages show the events that were dropped.",
    "ledgerops_recording_bytes_total": "only useful to choose the size of a recording.",
    "ledgerops_hdfs_state_cache_hits_total": HDFS,
    "ledgerops_hdfs_state_cache_misses_total": HDFS,
    "ledgerops_hdfs_state_current_version_bytes": HDFS,
    "ledgerops_hdfs_state_forced_snapshots_total": REPAIR,
    "ledgerops_hdfs_state_snapshots_repaired_total": REPAIR,
    "ledgerops_rocksdb_forced_snapshots_total": REPAIR,
    "ledgerops_rocksdb_snapshots_repaired_total": REPAIR,
    "ledgerops_rocksdb_changelog_files_replayed_total": LOADING,
    "ledgerops_rocksdb_load_seconds_total": LOADING,
    "ledgerops_rocksdb_load_snapshot_seconds_total": LOADING,
    "ledgerops_rocksdb_loads_from_dfs_total": LOADING,
    "ledgerops_rocksdb_replay_changelog_seconds_total": LOADING,
    "ledgerops_rocksdb_compaction_read_bytes_total": BYTES,
    "ledgerops_rocksdb_compaction_written_bytes_total": BYTES,
    "ledgerops_rocksdb_flush_written_bytes_total": BYTES,
    "ledgerops_rocksdb_iterator_read_bytes_total": BYTES,
    "ledgerops_rocksdb_read_bytes_total": BYTES,
    "ledgerops_rocksdb_written_bytes_total": BYTES,
    "ledgerops_rocksdb_get_seconds_total": "the pages show the task time on state.",
    "ledgerops_rocksdb_gets_total": "the pages show the task time on state.",
    "ledgerops_rocksdb_put_seconds_total": "the pages show the task time on state.",
    "ledgerops_rocksdb_puts_total": "the pages show the task time on state.",
    "ledgerops_rocksdb_copied_bytes_total": FILES,
    "ledgerops_rocksdb_files_copied_total": FILES,
    "ledgerops_rocksdb_files_reused_total": FILES,
    "ledgerops_rocksdb_zip_uncompressed_bytes": FILES,
    "ledgerops_rocksdb_pinned_blocks_bytes": "a small part of the block cache.",
    "ledgerops_state_timer_seconds_total": TIMERS,
    "ledgerops_state_timers_deleted_total": TIMERS,
    "ledgerops_state_timers_expired_total": TIMERS,
    "ledgerops_state_timers_registered_total": TIMERS,
}


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
