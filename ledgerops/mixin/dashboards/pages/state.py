"""State: how much the operators keep, what commits cost, and RocksDB underneath."""

from __future__ import annotations

from ledgerops.mixin.dashboards.model import Page, Panel, Row, Target, by, pace, q
from ledgerops.mixin.dashboards.pages import rocksdb, stores

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
                        pace(q("ledgerops_state_updated_rows_total"), "{{query}} updated"),
                        pace(q("ledgerops_state_removed_rows_total"), "{{query}} removed"),
                    ),
                    "rowsps",
                    "State rows written, and evicted by watermark or time to live. Good: in the long run as many removed as added; a spike of removals is a watermark that jumped.",
                ),
                Panel(
                    "Task time on state",
                    (
                        pace(q("ledgerops_state_update_seconds_total"), "{{query}} update"),
                        pace(q("ledgerops_state_removal_seconds_total"), "{{query}} removal"),
                        pace(q("ledgerops_state_commit_seconds_total"), "{{query}} commit"),
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
                    drill="stale-snapshots",
                ),
                Panel(
                    "Duplicates dropped",
                    (pace(q("ledgerops_state_duplicate_rows_total")),),
                    "rowsps",
                    "Rows that a deduplication has seen before. Good: what the producers' retries explain.",
                    waits="a query that drops duplicates",
                    drill="unbounded-state",
                    width=12,
                ),
                Panel(
                    "Ended by time to live",
                    (pace(q("ledgerops_state_ttl_removed_values_total")),),
                    "ops",
                    "Values of transformWithState that ran out of time. Good: in the long run as many as are written.",
                    waits="a query whose state has a time to live",
                    drill="conflicting-duplicates",
                    width=12,
                ),
            ),
        ),
        rocksdb.ROW,
        stores.ROW,
    ),
)
