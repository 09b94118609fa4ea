"""Event time: the watermark, how far it is behind, and what it cost."""

from ledgerops.metrics.model import Metric, Series, known
from ledgerops.signals.query_view import QueryView


def _watermark(view: QueryView) -> Series:
    return known(view.last.watermark if view.last else None)  # 1970 until first set: no sample, not 56 years


WATERMARK: Metric[QueryView] = Metric("ledgerops_watermark_timestamp_seconds",
    "The watermark: rows with an older event time count as late.", read=_watermark)  # fmt: skip
WATERMARK_LAG: Metric[QueryView] = Metric("ledgerops_watermark_lag_seconds",
    "Now minus the watermark: grows while the query is stuck, idle, or reads old data.", read=_watermark,
    age=True)  # fmt: skip
NEWEST_EVENT: Metric[QueryView] = Metric("ledgerops_event_time_max_timestamp_seconds",
    "The newest event time among the remembered batches; with several watermarks, that of the first.",
    read=lambda view: known(
        max((at for batch in view.batches if (at := batch.event_time_max) is not None), default=None)))  # fmt: skip
DROPPED: Metric[QueryView] = Metric(
    "ledgerops_rows_dropped_by_watermark_total",
    "Rows that a state operator dropped as late; for aggregations a lower bound, counted after partial aggregation.",
    labels=("operator",),
    per_batch=lambda batch: {(operator.name,): float(operator.dropped_rows) for operator in batch.operators},
)
METRICS = (WATERMARK, WATERMARK_LAG, NEWEST_EVENT, DROPPED)
