"""The rows of the Query page about the data: backlog, event time, integrity; and the query's runs."""

from __future__ import annotations

from ledgerops.mixin import thresholds
from ledgerops.mixin.dashboards.model import Column, Panel, Row, Target, by, pace, q, quantile

LATENCIES = q("ledgerops_event_latency_seconds_bucket")

ROWS = (
    Row(
        "Backlog and lag",
        (
            Panel(
                "Backlog by partition",
                (
                    Target(
                        by("sum", "topic, partition", q("ledgerops_source_backlog_offsets")),
                        "{{topic}} {{partition}}",
                    ),
                ),
                "short",
                "Offsets not read yet. Good: returns to near 0 with each batch, alike in all partitions.",
                width=8,
                stacked=True,
            ),
            Panel(
                "Lag by partition",
                (Target(by("max", "topic, partition", q("ledgerops_source_lag_seconds")), "{{topic}} {{partition}}"),),
                "s",
                "Age of the oldest unread row of each partition; it cannot be finer than the trigger interval. Good: below a few trigger intervals.",
                width=8,
                warn=thresholds.ageing,
                bad=thresholds.stale,
            ),
            Panel(
                "Time to drain",
                (Target(by("max", "query", q("ledgerops_backlog_drain_seconds"))),),
                "s",
                "Until the backlog is gone at the present rates. Good: seconds; absent when it would never be.",
                width=8,
                waits="a backlog that shrinks",
                drill="overload",
            ),
        ),
    ),
    Row(
        "Event time",
        (
            Panel(
                "Watermark lag",
                (
                    Target(by("max", "query", q("ledgerops_watermark_lag_seconds")), "watermark"),
                    Target(
                        "time() - " + by("max", "query", q("ledgerops_event_time_max_timestamp_seconds")),
                        "newest event",
                    ),
                ),
                "s",
                "Now minus the watermark, and minus the newest event time: they grow while the query is stuck, idle or reads old data. Good: the lateness plus a trigger interval; a negative newest event is dated ahead.",
                width=8,
                least=None,
                waits="a query with a watermark",
                drill="late-flood",
            ),
            Panel(
                "Event latency percentiles",
                (
                    Target(quantile(0.5, "le", LATENCIES), "p50"),
                    Target(quantile(0.95, "le", LATENCIES), "p95"),
                    Target(quantile(0.99, "le", LATENCIES), "p99"),
                ),
                "s",
                "How old rows are when they are processed, for queries with ledgerops.instrument. Good: about a trigger interval.",
                width=8,
                warn=thresholds.ageing,
                bad=thresholds.stale,
                waits="ledgerops.instrument in the query",
                drill="late-flood",
            ),
            Panel(
                "Rows dropped as late",
                (pace(q("ledgerops_rows_dropped_by_watermark_total"), "{{operator}}", "operator"),),
                "rowsps",
                "Rows behind the watermark that an operator dropped; for aggregations a lower bound. Good: 0.",
                width=8,
                warn=thresholds.ANY,
            ),
        ),
    ),
    Row(
        "Integrity",
        (
            Panel(
                "Rows that entered and left",
                (pace(q("ledgerops_book_rows_total"), "{{kind}}", "kind"),),
                "rowsps",
                "Both sides of the books of a job that conserves its rows. Good: alike.",
                width=8,
                waits="ledgerops.book in the query",
                drill="ledger-imbalance",
            ),
            Panel(
                "Batches out of balance",
                (
                    Target(
                        by("sum", "query", "increase(" + q("ledgerops_unbalanced_batches_total") + "[1h])"),
                        "batches",
                    ),
                    Target(
                        by("sum", "query", "increase(" + q("ledgerops_unbalanced_amount_total") + "[1h])"),
                        "amount",
                    ),
                ),
                "short",
                "Of which other rows or another amount came out than went in, within an hour, and by how much. Good: 0.",
                width=8,
                bad=thresholds.ANY,
                waits="ledgerops.book in the query",
                drill="ledger-imbalance",
            ),
            Panel(
                "Conflicting copies",
                (pace(q("ledgerops_conflicting_rows_total")),),
                "rowsps",
                "Copies that say something else than the first of their id. Good: 0.",
                width=8,
                bad=thresholds.ANY,
                waits="ledgerops.conflicts in the query",
                drill="conflicting-duplicates",
            ),
        ),
    ),
    Row(
        "Runs",
        (
            Panel(
                "Failures since the driver began",
                (Column(by("sum", "error_class", q("ledgerops_query_failures_total")), "failures", warn=1.0),),
                "short",
                "Runs that ended with an exception, by Spark's error class. Good: empty.",
                kind="table",
                width=8,
                height=6,
                waits="a run that failed",
                drill="crash",
            ),
            Panel(
                "The present run",
                (Target(q("ledgerops_query_info"), "info"),),
                "short",
                "Trigger, output mode, sink, version and ids of the run. Good: what was deployed.",
                kind="table",
                width=16,
                height=6,
                hides=("Value", "job", "query"),
            ),
        ),
    ),
)
