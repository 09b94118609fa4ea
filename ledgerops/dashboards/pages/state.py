"""State: how much the operators keep, what commits cost, and RocksDB underneath."""

from __future__ import annotations

from ledgerops.dashboards.model import Page, Panel, Row, Target, by, q, rate

PAGE = Page(
    uid="ledgerops-state",
    title="ledgerops / State and RocksDB",
    help="State of the stateful queries: size, updates, commits, and what RocksDB does.",
    rows=(
        Row(
            "State",
            (
                Panel(
                    "State rows",
                    (Target(by("sum", "query, operator", q("ledgerops_state_rows")), "{{query}} {{operator}}"),),
                    "short",
                    "Rows kept. Good: a plateau once windows are full; a steady rise has no bound.",
                ),
                Panel(
                    "State memory",
                    (
                        Target(
                            by("sum", "query, operator", q("ledgerops_state_memory_bytes")), "{{query}} {{operator}}"
                        ),
                    ),
                    "bytes",
                    "Memory of the state stores as Spark reckons it. Good: a plateau below the memory given to it.",
                ),
                Panel(
                    "Growth of state",
                    (Target(by("sum", "query", "deriv(" + q("ledgerops_state_rows") + "[10m])")),),
                    "rowsps",
                    "Rows by which the state grows a second, over ten minutes. Good: around 0 after warm-up.",
                    least=None,
                ),
                Panel(
                    "Rows updated and removed",
                    (
                        Target(by("sum", "query", rate(q("ledgerops_state_updated_rows_total"))), "{{query}} updated"),
                        Target(by("sum", "query", rate(q("ledgerops_state_removed_rows_total"))), "{{query}} removed"),
                    ),
                    "rowsps",
                    "State rows written, and evicted by watermark or time to live. Good: in the long run as many removed as added; a spike of removals is a watermark that jumped.",
                ),
                Panel(
                    "Task time on state",
                    (
                        Target(by("sum", "query", rate(q("ledgerops_state_update_seconds_total"))), "{{query}} update"),
                        Target(
                            by("sum", "query", rate(q("ledgerops_state_removal_seconds_total"))), "{{query}} removal"
                        ),
                        Target(by("sum", "query", rate(q("ledgerops_state_commit_seconds_total"))), "{{query}} commit"),
                    ),
                    "s",
                    "Task seconds in each second, summed over tasks. Good: commits well below the batch time.",
                    stacked=True,
                ),
                Panel(
                    "Snapshot lag",
                    (
                        Target(
                            by("max", "query, operator", q("ledgerops_state_snapshot_lag_batches")),
                            "{{query}} {{operator}}",
                        ),
                    ),
                    "short",
                    "Batches since the oldest uploaded snapshot: what a restart must replay. Good: below twice spark.sql.streaming.stateStore.minDeltasForSnapshot.",
                    waits="a snapshot upload",
                ),
            ),
        ),
        Row(
            "RocksDB",
            (
                Panel(
                    "Size of SST files",
                    (Target(by("sum", "query, operator", q("ledgerops_rocksdb_sst_bytes")), "{{query}} {{operator}}"),),
                    "bytes",
                    "All SST files. Good: follows the state rows.",
                ),
                Panel(
                    "Commit time by part",
                    (
                        Target(
                            by("sum", "query", rate(q("ledgerops_rocksdb_commit_flush_seconds_total"))),
                            "{{query}} flush",
                        ),
                        Target(
                            by("sum", "query", rate(q("ledgerops_rocksdb_commit_compact_seconds_total"))),
                            "{{query}} compact",
                        ),
                        Target(
                            by("sum", "query", rate(q("ledgerops_rocksdb_commit_checkpoint_seconds_total"))),
                            "{{query}} checkpoint",
                        ),
                        Target(
                            by("sum", "query", rate(q("ledgerops_rocksdb_commit_file_sync_seconds_total"))),
                            "{{query}} file sync",
                        ),
                        Target(
                            by("sum", "query", rate(q("ledgerops_rocksdb_changelog_commit_seconds_total"))),
                            "{{query}} changelog",
                        ),
                    ),
                    "s",
                    "What commits spend their time on. Good: changelog and file sync, little else.",
                    stacked=True,
                ),
                Panel(
                    "Writer stall",
                    (Target(by("sum", "query", rate(q("ledgerops_rocksdb_writer_stall_seconds_total")))),),
                    "s",
                    "Time for which writers were held up. Good: 0.",
                    warn=0.001,
                ),
                Panel(
                    "Reads and writes",
                    (
                        Target(by("sum", "query", rate(q("ledgerops_rocksdb_gets_total"))), "{{query}} reads"),
                        Target(by("sum", "query", rate(q("ledgerops_rocksdb_puts_total"))), "{{query}} writes"),
                    ),
                    "ops",
                    "RocksDB operations. Good: in proportion to the rows read.",
                ),
                Panel(
                    "Block cache hits",
                    (
                        Target(
                            by("sum", "query", rate(q("ledgerops_rocksdb_block_cache_hits_total")))
                            + " / ("
                            + by("sum", "query", rate(q("ledgerops_rocksdb_block_cache_hits_total")))
                            + " + "
                            + by("sum", "query", rate(q("ledgerops_rocksdb_block_cache_misses_total")))
                            + " > 0)"
                        ),
                    ),
                    "percentunit",
                    "Share of block reads that the cache answers. Good: above 90 %.",
                    most=1.0,
                    waits="reads that reach SST files",
                ),
                Panel(
                    "Compaction",
                    (
                        Target(
                            by("sum", "query", rate(q("ledgerops_rocksdb_compaction_read_bytes_total"))),
                            "{{query}} read",
                        ),
                        Target(
                            by("sum", "query", rate(q("ledgerops_rocksdb_compaction_written_bytes_total"))),
                            "{{query}} written",
                        ),
                    ),
                    "Bps",
                    "Bytes moved by compactions. Good: a small multiple of the bytes written.",
                ),
                Panel(
                    "Uploads",
                    (Target(by("sum", "query", rate(q("ledgerops_rocksdb_copied_bytes_total")))),),
                    "Bps",
                    "Bytes uploaded to the checkpoint. Good: small with changelog checkpointing, a peak at each snapshot.",
                ),
                Panel(
                    "Timers",
                    (
                        Target(
                            by("sum", "query", rate(q("ledgerops_state_timers_registered_total"))),
                            "{{query}} registered",
                        ),
                        Target(
                            by("sum", "query", rate(q("ledgerops_state_timers_expired_total"))), "{{query}} expired"
                        ),
                    ),
                    "ops",
                    "Timers of transformWithState. Good: as many expire as are registered.",
                    waits="a query with timers",
                ),
                Panel(
                    "Pinned blocks",
                    (Target(by("sum", "query", q("ledgerops_rocksdb_pinned_blocks_bytes"))),),
                    "bytes",
                    "Memory of pinned blocks. Good: a small part of the block cache.",
                ),
            ),
        ),
    ),
)
