"""State: how much one query keeps, what that costs its batches, and RocksDB underneath."""

from ledgerops.mixin.dashboards.model import Page, Panel, Row, Target, by, per_second, q
from ledgerops.mixin.dashboards.pages import rocksdb

PER_OPERATOR = "app, query, operator"
STATEFUL = "a query with state"

PAGE = Page(
    uid="ledgerops-state", title="ledgerops / State",
    help="The state of one query: its size, what it costs each batch, and what RocksDB does.", single=True,
    rows=(
        Row(
            "How much state is there, and does it stop growing?",
            (
                Panel(
                    "State rows by operator",
                    (Target(by("sum", PER_OPERATOR, q("ledgerops_state_rows")), "{{operator}}"),), "short",
                    "Rows kept. Good: a plateau once windows are full; a steady rise has no bound.", width=8,
                    empty=f"needs {STATEFUL}",
                ),
                Panel(
                    "State memory by operator",
                    (Target(by("sum", PER_OPERATOR, q("ledgerops_state_memory_bytes")), "{{operator}}"),), "bytes",
                    "Memory of the state stores, as reported by Spark. Good: a plateau below the memory given to it.",
                    width=8, empty=f"needs {STATEFUL}",
                ),
                Panel(
                    "Rows written and removed",
                    (
                        per_second(q("ledgerops_state_updated_rows_total"), "written"),
                        per_second(q("ledgerops_state_removed_rows_total"), "removed by the watermark"),
                        per_second(q("ledgerops_state_ttl_removed_values_total"), "removed by time to live"),
                        per_second(q("ledgerops_state_duplicate_rows_total"), "dropped as duplicates"),
                    ),
                    "rowsps",
                    "What enters and leaves the state. Good: over time as many rows are removed as are added; a spike of removals is a watermark that jumped.",
                    width=8, empty=f"needs {STATEFUL}",
                ),
            ),
        ),
        Row(
            "What does state cost a batch?",
            (
                Panel(
                    "Task time on state",
                    (
                        per_second(q("ledgerops_state_update_seconds_total"), "update"),
                        per_second(q("ledgerops_state_removal_seconds_total"), "removal"),
                        per_second(q("ledgerops_state_commit_seconds_total"), "commit"),
                    ),
                    "s", "Task seconds in each second, summed over tasks. Good: commits well below the batch time.",
                    stacked=True, empty=f"needs {STATEFUL}",
                ),
                Panel(
                    "Batches since the oldest snapshot",
                    (Target(by("max", PER_OPERATOR, q("ledgerops_state_snapshot_lag_batches")), "{{operator}}"),),
                    "short",
                    "What a restart must replay. Good: below twice spark.sql.streaming.stateStore.minDeltasForSnapshot.",
                    waits="a snapshot upload", drill="stale-snapshots",
                ),
            ),
        ),
        rocksdb.ROW,
    ),
)  # fmt: skip
