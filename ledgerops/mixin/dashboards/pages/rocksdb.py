"""The row of the State page about RocksDB."""

from __future__ import annotations

from ledgerops.mixin import thresholds
from ledgerops.mixin.dashboards.model import Panel, Row, Target, by, over, pace, q, rate

HITS = by("sum", "query", rate(q("ledgerops_rocksdb_block_cache_hits_total")))
MISSES = by("sum", "query", rate(q("ledgerops_rocksdb_block_cache_misses_total")))

ROW = Row(
    "RocksDB",
    (
        Panel(
            "Size of SST files",
            (
                Target(by("sum", "query, operator", q("ledgerops_rocksdb_sst_bytes")), "{{query}} {{operator}}"),
                Target(
                    by("sum", "query", q("ledgerops_rocksdb_zip_uncompressed_bytes")),
                    "{{query}} other files of the newest snapshot",
                ),
            ),
            "bytes",
            "All SST files, and what a snapshot holds besides. Good: follows the state rows.",
        ),
        Panel(
            "Commit time by part",
            (
                pace(q("ledgerops_rocksdb_commit_flush_seconds_total"), "{{query}} flush"),
                pace(q("ledgerops_rocksdb_commit_compact_seconds_total"), "{{query}} compact"),
                pace(q("ledgerops_rocksdb_commit_checkpoint_seconds_total"), "{{query}} checkpoint"),
                pace(q("ledgerops_rocksdb_commit_file_sync_seconds_total"), "{{query}} file sync"),
                pace(q("ledgerops_rocksdb_changelog_commit_seconds_total"), "{{query}} changelog"),
                pace(q("ledgerops_rocksdb_save_zip_seconds_total"), "{{query}} zip"),
                pace(q("ledgerops_rocksdb_commit_pause_seconds_total"), "{{query}} pause (Spark 3)"),
                pace(q("ledgerops_rocksdb_commit_write_batch_seconds_total"), "{{query}} write batch (Spark 3)"),
            ),
            "s",
            "What commits spend their time on. Good: changelog and file sync, little else.",
            stacked=True,
        ),
        Panel(
            "Writer stall and compaction",
            (
                pace(q("ledgerops_rocksdb_writer_stall_seconds_total"), "{{query}} stalled"),
                pace(q("ledgerops_rocksdb_compaction_seconds_total"), "{{query}} compacting"),
            ),
            "s",
            "Seconds in each second for which writers were held up, and for which compactions ran. Good: no stall.",
            warn=thresholds.ANY,
        ),
        Panel(
            "Reads and writes",
            (
                pace(q("ledgerops_rocksdb_gets_total"), "{{query}} reads"),
                pace(q("ledgerops_rocksdb_puts_total"), "{{query}} writes"),
            ),
            "ops",
            "RocksDB operations. Good: in proportion to the rows read.",
        ),
        Panel(
            "Time of reads and writes",
            (
                pace(q("ledgerops_rocksdb_get_seconds_total"), "{{query}} reads"),
                pace(q("ledgerops_rocksdb_put_seconds_total"), "{{query}} writes"),
            ),
            "s",
            "Task seconds in each second that RocksDB took for them. Good: a small part of the task time on state.",
        ),
        Panel(
            "Bytes read and written",
            (
                pace(q("ledgerops_rocksdb_read_bytes_total"), "{{query}} read"),
                pace(q("ledgerops_rocksdb_iterator_read_bytes_total"), "{{query}} read through iterators"),
                pace(q("ledgerops_rocksdb_written_bytes_total"), "{{query}} written"),
                pace(q("ledgerops_rocksdb_flush_written_bytes_total"), "{{query}} flushed"),
            ),
            "Bps",
            "Bytes of the reads and writes above, and of memtables that were flushed. Good: in proportion to the operations.",
        ),
        Panel(
            "Block cache hits",
            (Target(over(HITS, f"{HITS} + {MISSES}")),),
            "percentunit",
            f"Share of block reads that the cache answers. Good: above {thresholds.percent(thresholds.CACHED)}.",
            warn=thresholds.CACHED,
            low=True,
            most=1.0,
            waits="reads that reach SST files",
            drill="rocksdb-stall",
        ),
        Panel(
            "Compaction",
            (
                pace(q("ledgerops_rocksdb_compaction_read_bytes_total"), "{{query}} read"),
                pace(q("ledgerops_rocksdb_compaction_written_bytes_total"), "{{query}} written"),
            ),
            "Bps",
            "Bytes moved by compactions. Good: a small multiple of the bytes written.",
        ),
        Panel(
            "Uploads",
            (pace(q("ledgerops_rocksdb_copied_bytes_total")),),
            "Bps",
            "Bytes uploaded to the checkpoint. Good: small with changelog checkpointing, a peak at each snapshot.",
        ),
        Panel(
            "Files of snapshots",
            (
                pace(q("ledgerops_rocksdb_files_copied_total"), "{{query}} uploaded"),
                pace(q("ledgerops_rocksdb_files_reused_total"), "{{query}} reused"),
            ),
            "ops",
            "SST files that snapshots upload, and those that an earlier one had uploaded. Good: mostly reused.",
            width=6,
        ),
        Panel(
            "Timers",
            (
                pace(q("ledgerops_state_timers_registered_total"), "{{query}} registered"),
                pace(q("ledgerops_state_timers_expired_total"), "{{query}} expired"),
                pace(q("ledgerops_state_timers_deleted_total"), "{{query}} deleted"),
            ),
            "ops",
            "Timers of transformWithState. Good: as many expire or are deleted as are registered.",
            waits="a query with timers",
            drill="conflicting-duplicates",
            width=6,
        ),
        Panel(
            "Task time on timers",
            (pace(q("ledgerops_state_timer_seconds_total")),),
            "s",
            "Task seconds in each second that expired timers take. Good: a small part of the batch time.",
            waits="a query with timers",
            drill="conflicting-duplicates",
            width=6,
        ),
        Panel(
            "Pinned blocks",
            (Target(by("sum", "query", q("ledgerops_rocksdb_pinned_blocks_bytes"))),),
            "bytes",
            "Memory of pinned blocks. Good: a small part of the block cache.",
            width=6,
        ),
    ),
)
