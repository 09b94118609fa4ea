"""Skew of the newest batch over source partitions, tasks, executors and keys."""

from ledgerops.metrics.model import Metric
from ledgerops.signals.query_view import QueryView

RATIO: Metric[QueryView] = Metric(
    "ledgerops_skew_ratio",
    "Largest over median in the newest batch: rows of source partitions, records and time of tasks, time of executors "
    "(largest over mean where most executors ran nothing).",
    labels=("kind",),
    read=lambda view: {(kind,): ratio for kind, (ratio, _) in view.skew.ratios.items() if ratio is not None},
)
SCORE: Metric[QueryView] = Metric(
    "ledgerops_skew_score",
    "Mean absolute deviation over the mean, times 100, at most 100 (Flink's FLIP-418), in the newest batch.",
    labels=("kind",),
    read=lambda view: {(kind,): score for kind, (_, score) in view.skew.ratios.items() if score is not None},
)
HOT_KEY: Metric[QueryView] = Metric("ledgerops_hot_key_share",
    "Share of the newest batch's rows that have its most frequent key; needs ledgerops.instrument with a key.",
    read=lambda view: {} if view.skew.hot_key is None else {(): view.skew.hot_key.share})  # fmt: skip
METRICS = (RATIO, SCORE, HOT_KEY)
