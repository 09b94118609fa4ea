"""Rows in, rows out, batches."""

from ledgerops.metrics.model import Metric, Series, known
from ledgerops.model.observed_metrics import OBSERVATION
from ledgerops.model.records import Progress
from ledgerops.signals.query_view import QueryView

REJECTED = "rejected_"  # columns of an observation: how many records of the batch were refused, by reason


def _rejected(batch: Progress) -> Series:
    """Refused records by reason, summed over the observations that count them: each observes different records."""
    found: dict[tuple[str, ...], float] = {}
    for name, row in batch.observed.items():
        if name.startswith(OBSERVATION):
            for column, count in row.items():
                if column.startswith(REJECTED) and isinstance(count, int):
                    reason = (column.removeprefix(REJECTED),)
                    found[reason] = found.get(reason, 0.0) + count
    return found


INPUT_ROWS: Metric[QueryView] = Metric("ledgerops_input_rows_total",
    "Rows read from each source. One that a plan reads twice counts twice, as Spark counts it; Kafka once, by offsets.",
    labels=("source",),
    per_batch=lambda batch: {(source.name,): float(source.rows) for source in batch.sources})  # fmt: skip
REJECTED_ROWS: Metric[QueryView] = Metric("ledgerops_rejected_rows_total",
    "Records that could not be parsed as a row of their table, by reason; for sources that are read as bytes.",
    labels=("reason",), per_batch=_rejected)  # fmt: skip
OUTPUT_ROWS: Metric[QueryView] = Metric("ledgerops_output_rows_total",
    "Rows written to the sink; absent for sinks that do not report it, such as foreachBatch.",
    per_batch=lambda batch: {} if batch.output_rows is None else {(): float(batch.output_rows)})  # fmt: skip
BATCHES: Metric[QueryView] = Metric("ledgerops_batches_total", "Micro-batches committed.",
    per_batch=lambda batch: {(): 1.0})  # fmt: skip
INPUT_RATE: Metric[QueryView] = Metric("ledgerops_input_rows_per_second",
    "Rows read per second of wall time over the last minute: what was read, not what arrived.", labels=("source",),
    read=lambda view: {(source,): rate for source, rate in view.rates.read_by_source.items()})  # fmt: skip
PROCESSED_RATE: Metric[QueryView] = Metric("ledgerops_processed_rows_per_second",
    "Rows per second of batch time over the last minute: the speed while a batch runs; 0 when idle.",
    read=lambda view: known(0.0 if view.run.is_idle else view.rates.processed))  # fmt: skip
METRICS = (INPUT_ROWS, REJECTED_ROWS, OUTPUT_ROWS, BATCHES, INPUT_RATE, PROCESSED_RATE)
