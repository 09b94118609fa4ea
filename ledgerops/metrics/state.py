"""State: rows, memory, work, and every custom metric of the state stores in its true unit and type.

Names and meanings of the custom metrics are those of RocksDBStateStoreProvider, HDFSBackedStateStoreProvider and the
state operators of Spark 3.5 to 4.3. RocksDB's times and counts are of one batch, summed over partitions, so they are
counters here; those of the upload of a snapshot are of each partition's last one, and told again in every batch until
the next. HDFS's cache counts go on from batch to batch in Spark itself.
"""

from collections.abc import Callable, Iterator
from typing import Literal

from ledgerops.metrics.model import Labels, Metric, Series
from ledgerops.model.records import Progress, StateOperator
from ledgerops.signals.query_view import QueryView

OPERATOR = ("operator",)


def _each(value: Callable[[StateOperator], float | None]) -> Callable[[Progress], Series]:
    def read(batch: Progress) -> Series:
        return {(operator.name,): float(x) for operator in batch.operators if (x := value(operator)) is not None}

    return read


def _newest(value: Callable[[StateOperator], float | None]) -> Callable[[QueryView], Series]:
    each = _each(value)
    return lambda view: each(view.last) if view.last else {}


def _snapshot_lag(view: QueryView) -> Series:
    """Batches since the laggard's snapshot: a store's version is the batch id plus one; -1 is 'never'."""
    if view.last is None:
        return {}
    version = view.last.batch_id + 1
    return {
        (operator.name,): float(version - max(0, min(operator.snapshot_versions.values())))
        for operator in view.last.operators
        if operator.snapshot_versions
    }


def _shown(name: str, value: Callable[[StateOperator], float | None], text: str) -> Metric[QueryView]:
    """A number of the newest batch."""
    return Metric(f"ledgerops_state_{name}", text, labels=OPERATOR, read=_newest(value))


def _summed(name: str, value: Callable[[StateOperator], float | None], text: str) -> Metric[QueryView]:
    """The sum of a number over all batches."""
    return Metric(f"ledgerops_state_{name}_total", text, labels=OPERATOR, per_batch=_each(value))


# Spark's name, our name, how one batch's value is to be taken, what to multiply it by, help
Taken = Literal["add", "newest", "counted"]  # add it up; show the newest; Spark has added it up already
MS, NS, ONE = 0.001, 1e-9, 1.0
CUSTOM: tuple[tuple[str, str, Taken, float, str], ...] = (
    ("rocksdbGetLatency", "rocksdb_get_seconds_total", "add", MS, "Time of RocksDB reads."),
    ("rocksdbPutLatency", "rocksdb_put_seconds_total", "add", MS, "Time of RocksDB writes."),
    ("rocksdbCommitFlushLatency", "rocksdb_commit_flush_seconds_total", "add", MS, "Commit time: memtable flush."),
    ("rocksdbCommitCompactLatency", "rocksdb_commit_compact_seconds_total", "add", MS, "Commit time: compaction."),
    ("rocksdbCommitCheckpointLatency", "rocksdb_commit_checkpoint_seconds_total", "add", MS, "Commit time: local checkpoint."),
    ("rocksdbCommitFileSyncLatencyMs", "rocksdb_commit_file_sync_seconds_total", "add", MS, "Commit time: upload of files."),
    ("rocksdbCommitPauseLatency", "rocksdb_commit_pause_seconds_total", "add", MS, "Commit time: pausing background work (Spark 3)."),
    ("rocksdbCommitWriteBatchLatency", "rocksdb_commit_write_batch_seconds_total", "add", MS, "Commit time: write batch (Spark 3)."),
    ("rocksdbChangeLogWriterCommitLatencyMs", "rocksdb_changelog_commit_seconds_total", "add", MS, "Commit time: changelog."),
    ("rocksdbSaveZipFilesLatencyMs", "rocksdb_save_zip_seconds_total", "add", MS, "Time to write the snapshot's zip file."),
    ("rocksdbLoadLatencyMs", "rocksdb_load_seconds_total", "add", MS, "Time to load a state version."),
    ("rocksdbLoadFromSnapshotLatencyMs", "rocksdb_load_snapshot_seconds_total", "add", MS, "Load time: from a snapshot."),
    ("rocksdbReplayChangeLogLatencyMs", "rocksdb_replay_changelog_seconds_total", "add", MS, "Load time: replay of changelogs."),
    ("rocksdbWriterStallLatencyMs", "rocksdb_writer_stall_seconds_total", "add", NS, "Time that writers were stalled; should be 0."),
    ("rocksdbTotalCompactionLatencyMs", "rocksdb_compaction_seconds_total", "add", MS, "Time of compactions."),
    ("rocksdbGetCount", "rocksdb_gets_total", "add", ONE, "RocksDB reads."),
    ("rocksdbPutCount", "rocksdb_puts_total", "add", ONE, "RocksDB writes."),
    ("rocksdbFilesCopied", "rocksdb_copied_files", "newest", ONE, "SST files uploaded with the last snapshot of each partition."),
    ("rocksdbFilesReused", "rocksdb_reused_files", "newest", ONE, "SST files of the last snapshot of each partition that were uploaded before."),
    ("rocksdbReadBlockCacheHitCount", "rocksdb_block_cache_hits_total", "add", ONE, "Block cache hits."),
    ("rocksdbReadBlockCacheMissCount", "rocksdb_block_cache_misses_total", "add", ONE, "Block cache misses."),
    ("rocksdbNumLoadedFromDfs", "rocksdb_loads_from_dfs_total", "add", ONE, "State versions loaded from the checkpoint, not from local files."),
    ("rocksdbNumSnapshotsAutoRepaired", "rocksdb_snapshots_repaired_total", "add", ONE, "Broken snapshots that were passed over by replaying changelogs."),
    ("rocksdbForceSnapshotCount", "rocksdb_forced_snapshots_total", "add", ONE, "Snapshots forced outside the schedule."),
    ("rocksdbNumReplayChangelogFiles", "rocksdb_changelog_files_replayed_total", "add", ONE, "Changelog files replayed while loading."),
    ("rocksdbBytesCopied", "rocksdb_copied_bytes", "newest", ONE, "Bytes uploaded with the last snapshot of each partition."),
    ("rocksdbTotalBytesRead", "rocksdb_read_bytes_total", "add", ONE, "Bytes read."),
    ("rocksdbTotalBytesWritten", "rocksdb_written_bytes_total", "add", ONE, "Bytes written."),
    ("rocksdbTotalBytesReadThroughIterator", "rocksdb_iterator_read_bytes_total", "add", ONE, "Bytes read through iterators."),
    ("rocksdbTotalBytesReadByCompaction", "rocksdb_compaction_read_bytes_total", "add", ONE, "Bytes read by compactions."),
    ("rocksdbTotalBytesWrittenByCompaction", "rocksdb_compaction_written_bytes_total", "add", ONE, "Bytes written by compactions."),
    ("rocksdbTotalBytesWrittenByFlush", "rocksdb_flush_written_bytes_total", "add", ONE, "Bytes written by flushes."),
    ("rocksdbSstFileSize", "rocksdb_sst_bytes", "newest", ONE, "Size of all SST files."),
    ("rocksdbZipFileBytesUncompressed", "rocksdb_zip_uncompressed_bytes", "newest", ONE, "Size of the newest snapshot's other files before zipping."),
    ("rocksdbPinnedBlocksMemoryUsage", "rocksdb_pinned_blocks_bytes", "newest", ONE, "Memory of pinned blocks."),
    ("rocksdbNumInternalColFamiliesKeys", "rocksdb_internal_keys", "newest", ONE, "Keys in internal column families."),
    ("rocksdbNumExternalColumnFamilies", "rocksdb_external_column_families", "newest", ONE, "Column families of the application's state; in Spark 4.0 and 4.1 those of Spark's own (SPARK-56042)."),
    ("rocksdbNumInternalColumnFamilies", "rocksdb_internal_column_families", "newest", ONE, "Column families of Spark's own; in Spark 4.0 and 4.1 those of the application's state (SPARK-56042)."),
    ("stateOnCurrentVersionSizeBytes", "hdfs_state_current_version_bytes", "newest", ONE, "Memory of the newest version in the HDFS-backed store."),
    ("loadedMapCacheHitCount", "hdfs_state_cache_hits_total", "counted", ONE, "Versions found in the HDFS-backed store's cache."),
    ("loadedMapCacheMissCount", "hdfs_state_cache_misses_total", "counted", ONE, "Versions that the HDFS-backed store had to load."),
    ("forceSnapshotCount", "hdfs_state_forced_snapshots_total", "add", ONE, "Snapshots forced outside the schedule."),
    ("numSnapshotsAutoRepaired", "hdfs_state_snapshots_repaired_total", "add", ONE, "Broken snapshots that were passed over by replaying deltas."),
    ("numDroppedDuplicateRows", "state_duplicate_rows_total", "add", ONE, "Duplicates that a deduplication dropped."),
    ("numRowsReadDuringEviction", "state_eviction_read_rows_total", "add", ONE, "Rows read to find those to evict."),
    ("numRowsIncrementallyRemoved", "state_incrementally_removed_rows_total", "add", ONE, "Rows evicted a few at a time."),
    ("skippedNullValueCount", "state_skipped_nulls_total", "add", ONE, "Null values that a join's state skipped."),
    ("initialStateProcessingTimeMs", "state_initial_seconds_total", "add", MS, "Time to process the initial state."),
    ("timerProcessingTimeMs", "state_timer_seconds_total", "add", MS, "Time to process expired timers."),
    ("numRegisteredTimers", "state_timers_registered_total", "add", ONE, "Timers registered."),
    ("numDeletedTimers", "state_timers_deleted_total", "add", ONE, "Timers deleted."),
    ("numExpiredTimers", "state_timers_expired_total", "add", ONE, "Timers that expired."),
    ("numDeletedStateVars", "state_variables_deleted_total", "add", ONE, "State variables deleted."),
    ("numValuesRemovedDueToTTLExpiry", "state_ttl_removed_values_total", "add", ONE, "Values removed because their time to live ran out."),
    ("numValueStateVars", "state_value_variables", "newest", ONE, "Value state variables."),
    ("numListStateVars", "state_list_variables", "newest", ONE, "List state variables."),
    ("numMapStateVars", "state_map_variables", "newest", ONE, "Map state variables."),
    ("numValueStateWithTTLVars", "state_value_ttl_variables", "newest", ONE, "Value state variables with a time to live."),
    ("numListStateWithTTLVars", "state_list_ttl_variables", "newest", ONE, "List state variables with a time to live."),
    ("numMapStateWithTTLVars", "state_map_ttl_variables", "newest", ONE, "Map state variables with a time to live."),
)  # fmt: skip


def _custom(spark: str, name: str, taken: Taken, factor: float, text: str) -> Metric[QueryView]:
    def value(operator: StateOperator) -> float | None:
        raw = operator.custom.get(spark)
        return None if raw is None or raw < 0 else raw * factor

    read = None if taken == "add" else _newest(value)
    return Metric(f"ledgerops_{name}", text, labels=OPERATOR, read=read)


CUSTOM_METRICS = tuple(_custom(*row) for row in CUSTOM)
ADDED = {
    spark: (metric.name, factor)
    for (spark, _, taken, factor, _), metric in zip(CUSTOM, CUSTOM_METRICS, strict=True)
    if taken == "add"
}


def added(batch: Progress) -> Iterator[tuple[str, Labels, float]]:
    """What one batch adds to the custom metrics that are counters: family name, label values, increment."""
    for operator in batch.operators:
        labels = (operator.name,)
        for spark, raw in operator.custom.items():
            if raw >= 0 and spark in ADDED:
                name, factor = ADDED[spark]
                yield name, labels, raw * factor


SNAPSHOT_LAG: Metric[QueryView] = Metric(
    "ledgerops_state_snapshot_lag_batches",
    "Batches since the oldest of the last uploaded snapshots: what a restart must replay.",
    OPERATOR,
    _snapshot_lag,
)
METRICS = (
    _shown("rows", lambda each: each.rows, "Rows in the state of an operator."),
    _shown("memory_bytes", lambda each: each.memory_bytes,
           "Memory of an operator's state stores, as reported by Spark; with bounded RocksDB memory an even share."),
    _summed("updated_rows", lambda each: each.updated, "State rows written by an operator."),
    _summed("removed_rows", lambda each: each.removed,
            "State rows that an operator evicted; a spike is a watermark that jumped."),
    _summed("update_seconds", lambda each: each.update_seconds,
            "Task time that an operator spent updating state, summed over tasks."),
    _summed("removal_seconds", lambda each: each.removal_seconds,
            "Task time that an operator spent evicting state, summed over tasks."),
    _summed("commit_seconds", lambda each: each.commit_seconds,
            "Task time that an operator spent committing state, summed over tasks: it can exceed the batch's wall time."),
    _shown("partitions", lambda each: each.partitions,
           "State partitions of an operator: fixed by the checkpoint, and the most tasks that can work on it."),
    SNAPSHOT_LAG,
    *CUSTOM_METRICS,
)  # fmt: skip
