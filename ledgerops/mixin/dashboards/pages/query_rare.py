"""The collapsed row of the Query page: what only some queries have."""

from ledgerops.mixin import thresholds
from ledgerops.mixin.alerts.promql import born_or_increased
from ledgerops.mixin.dashboards.model import Panel, Row, Target, by, per_second, q, quantile
from ledgerops.mixin.dashboards.status import or_none

ONE_QUERY = "app, query"
LATENCIES = q("ledgerops_event_latency_seconds_bucket")
REACHABLE = by("min", ONE_QUERY, q("ledgerops_source_reachable"))


def _of_the_hour(counter: str) -> str:
    started = q("ledgerops_query_start_timestamp_seconds")
    return by("sum", ONE_QUERY, born_or_increased(q(counter), started, "1h", "1h", 7200.0))


ROW = Row(
    "What do instrument, book and the Kafka collector add?",
    (
        Panel(
            "Event latency",
            (
                Target(quantile(0.5, "le", LATENCIES), "p50"), Target(quantile(0.95, "le", LATENCIES), "p95"),
                Target(quantile(0.99, "le", LATENCIES), "p99"),
            ),
            "s", "How old rows are when they are processed. Good: about a trigger interval.",
            warn=thresholds.ageing_seconds, bad=thresholds.stale_seconds, width=8,
            waits="ledgerops.instrument in the query", drill="late-flood",
        ),
        Panel(
            "Share of the hottest key", (Target(by("max", ONE_QUERY, q("ledgerops_hot_key_share")), "hottest key"),),
            "percentunit",
            f"Share of the rows that the most frequent key holds. Good: below {thresholds.percent(thresholds.HOT_KEY)}.",
            warn=thresholds.HOT_KEY, most=1.0, width=8, waits="ledgerops.instrument with a key", drill="whale-key",
        ),
        Panel(
            "Rows written and rejected",
            (
                per_second(q("ledgerops_output_rows_total"), "written", ONE_QUERY),
                per_second(q("ledgerops_rejected_rows_total"), "rejected: {{reason}}", f"{ONE_QUERY}, reason"),
            ),
            "rowsps",
            "Rows written, for sinks that report them, and records that could not be parsed. Good: follows the rows read, none rejected.",
            width=8, waits="a sink that reports its rows", drill="python-bound",
        ),
        Panel(
            "Integrity in the last hour",
            (
                Target(f"round({_of_the_hour('ledgerops_unbalanced_batches_total')})", "unbalanced batches"),
                Target(_of_the_hour("ledgerops_unbalanced_amount_total"), "unbalanced amount"),
                Target(f"round({_of_the_hour('ledgerops_conflicting_rows_total')})", "conflicting copies"),
            ),
            "short",
            "Batches that wrote other rows or another amount than they read, by how much, and copies of a row that contradict the first. Good: 0.",
            bad=thresholds.ANY, width=8, waits="ledgerops.book or ledgerops.conflicts in the query",
            drill="ledger-imbalance",
        ),
        Panel(
            "Time until rows are deleted",
            (Target(by("min", f"{ONE_QUERY}, topic", q("ledgerops_retention_headroom_seconds")), "{{topic}}"),), "s",
            "Retention headroom of each topic. Good: hours; at 0 rows may be deleted at any moment.",
            warn=thresholds.retention_seconds, bad=thresholds.LOST_SECONDS, low=True, width=8,
            waits="the Kafka collector and a topic with limited retention", drill="retention-loss",
        ),
        Panel(
            "Does the broker answer?",
            (Target(or_none(REACHABLE, q("ledgerops_query_active"), "query", "no Kafka collector", -1), "broker"),),
            "short", "Whether the broker answers ledgerops. Good: yes throughout.", kind="state-timeline",
            names=(("-1", "unknown:not measured"), ("0", "bad:no"), ("1", "good:yes")), width=8,
            waits="the Kafka collector", drill="broker-down",
        ),
    ),
    collapsed=True,
)  # fmt: skip
