"""Kafka: what waits in the topics, how old it is, and how long it will be kept."""

from __future__ import annotations

from ledgerops.mixin import thresholds
from ledgerops.mixin.dashboards.model import Page, Panel, Row, Target, by, pace, q

PAGE = Page(
    uid="ledgerops-kafka",
    title="ledgerops / Kafka",
    help="Sources with offsets: arrival, backlog and lag by partition, and the time until unread rows are deleted.",
    rows=(
        Row(
            "Topics",
            (
                Panel(
                    "Arrival",
                    (Target(by("sum", "source", q("ledgerops_arrival_rows_per_second")), "{{source}}"),),
                    "rowsps",
                    "Rows that arrive by the growth of the heads: consumption cannot hide it. Good: what producers plan.",
                    width=12,
                ),
                Panel(
                    "Read",
                    (pace(q("ledgerops_input_rows_total"), "{{query}} {{source}}", "query, source"),),
                    "rowsps",
                    "Rows that each query reads of each source. Good: equal to the arrival.",
                    width=12,
                ),
                Panel(
                    "Backlog",
                    (Target(by("sum", "query, topic", q("ledgerops_source_backlog_offsets")), "{{query}} {{topic}}"),),
                    "short",
                    "Offsets not read yet. Good: returns to near 0 with each batch.",
                ),
                Panel(
                    "Lag",
                    (Target(by("max", "query, topic", q("ledgerops_source_lag_seconds")), "{{query}} {{topic}}"),),
                    "s",
                    "Age of the oldest unread row. Good: below a few trigger intervals.",
                    warn=thresholds.ageing,
                    bad=thresholds.stale,
                ),
                Panel(
                    "Retention headroom",
                    (
                        Target(
                            by("min", "query, topic", q("ledgerops_retention_headroom_seconds")), "{{query}} {{topic}}"
                        ),
                    ),
                    "s",
                    "Time until the oldest unread row is deleted. Good: hours; at 0 they go at any moment.",
                    warn=thresholds.retention,
                    bad=thresholds.LOST,
                    low=True,
                    waits="the Kafka collector and a topic with limited retention",
                    drill="retention-loss",
                ),
                Panel(
                    "Reachable",
                    (Target(by("min", "query", q("ledgerops_source_reachable"))),),
                    "short",
                    "Whether the broker answers the Kafka collector. Good: yes throughout.",
                    kind="state-timeline",
                    names=(("0", "bad:no"), ("1", "good:yes")),
                    width=24,
                    height=6,
                    waits="the Kafka collector",
                    drill="broker-down",
                ),
            ),
        ),
    ),
)
