"""Skew: which partition, key, task or executor has more than its share."""

from __future__ import annotations

from ledgerops.mixin import thresholds
from ledgerops.mixin.dashboards.model import Page, Panel, Row, Target, by, d, pace, q

PAGE = Page(
    uid="ledgerops-skew",
    title="ledgerops / Skew",
    help="Uneven load over source partitions, keys, tasks and executors, of the newest batch and not of the lifetime.",
    rows=(
        Row(
            "How uneven",
            (
                Panel(
                    "Largest over median",
                    (Target(by("max", "query, kind", q("ledgerops_skew_ratio")), "{{query}} {{kind}}"),),
                    "short",
                    f"Largest over median by kind. Good: below {thresholds.SKEWED:g}; of two tasks it cannot exceed 2.",
                    warn=thresholds.SKEWED,
                    bad=thresholds.LOPSIDED,
                    width=12,
                ),
                Panel(
                    "Skew score (FLIP-418)",
                    (Target(by("max", "query, kind", q("ledgerops_skew_score")), "{{query}} {{kind}}"),),
                    "short",
                    f"Mean absolute deviation over the mean, times 100, at most 100: the score that Flink users know. Good: below {thresholds.UNEVEN:g}.",
                    warn=thresholds.UNEVEN,
                    most=100,
                    width=12,
                ),
            ),
        ),
        Row(
            "Where",
            (
                Panel(
                    "Hottest key",
                    (Target(by("max", "query", q("ledgerops_hot_key_share"))),),
                    "percentunit",
                    f"Share of the rows that the most frequent key holds, for queries with ledgerops.instrument. Good: below {thresholds.percent(thresholds.HOT_KEY)}.",
                    warn=thresholds.HOT_KEY,
                    most=1.0,
                    waits="ledgerops.instrument with a key",
                    drill="whale-key",
                ),
                Panel(
                    "Backlog by partition",
                    (
                        Target(
                            by("sum", "query, topic, partition", q("ledgerops_source_backlog_offsets")),
                            "{{query}} {{topic}} {{partition}}",
                        ),
                    ),
                    "short",
                    "A pinned partition stands out here. Good: alike.",
                ),
                Panel(
                    "Task time by executor",
                    (
                        pace(
                            d("ledgerops_executor_run_seconds_total"), "{{instance}} {{executor}}", "instance, executor"
                        ),
                    ),
                    "s",
                    "Task seconds in each second: scheduler skew shows as one executor far above the others. Good: alike.",
                ),
            ),
        ),
    ),
)
