"""Late transactions: keeps what a job with this watermark would drop, apart from what is on time.

Reads `transactions`, writes each of its rows unchanged: to `transactions.late` if a stateful job with the same lateness
and the same batches would drop it, else to `transactions.on_time`. Spark itself only counts such rows
(numRowsDroppedByWatermark); where aggregates come first, it counts groups and not rows.
State: none. Watermark: the largest event time seen, less the lateness. A row is late if it is not newer than the
watermark of the batch before its own; rows of the first batch are late only if they are dated 1970 or before. A
stateful job is one batch further after a pause of its input, in which it runs a batch without rows to close windows.
Restart: the watermark comes back with the checkpoint, so a repeated batch divides its rows as before.
Upgrade: the lateness may change at a restart; the watermark does not go back.
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from ledgerops.ledger.jobs.job import LATENESS, Job

LATE, ON_TIME = "transactions.late", "transactions.on_time"


def transform(transactions: DataFrame, lateness: str = LATENESS) -> DataFrame:
    """Transactions in; the same, under a watermark, out."""
    return transactions.withWatermark("event_time", lateness)


def divide(rows: DataFrame, watermark: float | None) -> DataFrame:
    """The rows of a batch with the name of their output in `topic`; `watermark` in seconds since the epoch."""
    # before there is a watermark Spark compares with zero; a row without an event time is never late
    limit = round((watermark or 0) * 1_000_000)
    return rows.withColumn("topic", F.when(F.unix_micros("event_time") <= limit, LATE).otherwise(ON_TIME))


JOB = Job(
    name="late_transactions",
    group="stateful",
    summary="Transactions that arrive too late for a watermark, and the others.",
    transform=transform,
    stateful=False,
    key="customer_id",
    lateness=LATENESS,
    route="topic",
    routes=(LATE, ON_TIME),
    on_batch=divide,
)
