"""The row of the State page about RocksDB."""

from ledgerops.mixin import thresholds
from ledgerops.mixin.dashboards.model import Panel, Row, Target, by, over, per_second, q, rate

HITS = by("sum", "app, query", rate(q("ledgerops_rocksdb_block_cache_hits_total")))
MISSES = by("sum", "app, query", rate(q("ledgerops_rocksdb_block_cache_misses_total")))
ROCKSDB = "needs a query with RocksDB as its state store"

ROW = Row(
    "What does RocksDB do?",
    (
        Panel(
            "Commit time by step",
            (
                per_second(q("ledgerops_rocksdb_commit_flush_seconds_total"), "flush"),
                per_second(q("ledgerops_rocksdb_commit_compact_seconds_total"), "compact"),
                per_second(q("ledgerops_rocksdb_commit_checkpoint_seconds_total"), "checkpoint"),
                per_second(q("ledgerops_rocksdb_commit_file_sync_seconds_total"), "file sync"),
                per_second(q("ledgerops_rocksdb_changelog_commit_seconds_total"), "changelog"),
                per_second(q("ledgerops_rocksdb_save_zip_seconds_total"), "zip"),
                per_second(q("ledgerops_rocksdb_commit_pause_seconds_total"), "pause (Spark 3)"),
                per_second(q("ledgerops_rocksdb_commit_write_batch_seconds_total"), "write batch (Spark 3)"),
            ),
            "s", "Task seconds in each second that commits take. Good: changelog and file sync, little else.",
            stacked=True, empty=ROCKSDB,
        ),
        Panel(
            "Stalls and compaction",
            (
                per_second(q("ledgerops_rocksdb_writer_stall_seconds_total"), "writers stalled"),
                per_second(q("ledgerops_rocksdb_compaction_seconds_total"), "compaction"),
            ),
            "s", "Seconds in each second for which writers were stalled and compactions ran. Good: no stall.",
            warn=thresholds.ANY, empty=ROCKSDB,
        ),
        Panel(
            "Block cache hits", (Target(over(HITS, f"{HITS} + {MISSES}"), "hit ratio"),), "percentunit",
            f"Share of block reads that the cache answers. Good: above {thresholds.percent(thresholds.CACHE_HITS)}.",
            warn=thresholds.CACHE_HITS, low=True, most=1.0, waits="reads that reach SST files", drill="rocksdb-stall",
        ),
        Panel(
            "Size of SST files",
            (Target(by("sum", "app, query, operator", q("ledgerops_rocksdb_sst_bytes")), "{{operator}}"),), "bytes",
            "All SST files. Good: follows the state rows.", empty=ROCKSDB,
        ),
    ),
    collapsed=True,
)  # fmt: skip
