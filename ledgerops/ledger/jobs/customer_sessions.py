"""Customer sessions: bursts of transactions of one customer, ended by a pause.

Reads `transactions`, writes one row for each session once the watermark has passed its end, which is the last
transaction plus the gap. State: one row for each open session. Watermark: the largest event time seen, less the
lateness; a row whose own session would have ended by then is dropped.
Restart: open sessions come back with the checkpoint; a session is written once.
Upgrade: the lateness may change at a restart. A new gap holds for rows from then on, while open sessions keep their
end; the key and the aggregates may not change.
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from ledgerops.ledger.jobs.job import LATENESS, Job

GAP = "5 minutes"


def transform(transactions: DataFrame, lateness: str = LATENESS) -> DataFrame:
    """Transactions in; customer_id, session_start, session_end, transactions (count) and amount (sum) out."""
    return (
        transactions.withWatermark("event_time", lateness)
        .groupBy(F.session_window("event_time", GAP), "customer_id")
        .agg(F.count("*").alias("transactions"), F.sum("amount").alias("amount"))
        .selectExpr(
            *("customer_id", "session_window.start AS session_start", "session_window.end AS session_end"),
            *("transactions", "amount"),
        )
    )


JOB = Job(
    name="customer_sessions",
    group="windows",
    summary=f"Each customer's bursts of transactions, ended by a pause of {GAP}.",
    transform=transform,
    stateful=True,
    key="customer_id",
    lateness=LATENESS,
)
