"""Daily counts: how many transactions each customer made in a day (UTC), and their sum.

Reads `transactions`, writes one row for each customer and day once the watermark has passed the end of the day. State:
one row for each customer and day still open. Watermark: the largest event time seen, less the lateness; rows of a day
that has been closed are dropped. The last days stay in state until newer rows arrive.
Restart: open days come back with the checkpoint; a day is written once.
Upgrade: the lateness may change at a restart; the window, the key and the aggregates may not (begin with a new
checkpoint and output).
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from ledgerops.ledger.jobs.job import LATENESS, Job

WINDOW = "1 day"


def transform(transactions: DataFrame, lateness: str = LATENESS) -> DataFrame:
    """Transactions in; window_start, window_end, customer_id, transactions (count) and amount (sum) out."""
    return count_in_windows(transactions, lateness, WINDOW)


def count_in_windows(transactions: DataFrame, lateness: str, *window: str) -> DataFrame:
    """Number and sum of each customer's transactions in each window: its length, and how often one begins."""
    return (
        transactions.withWatermark("event_time", lateness)
        .groupBy(F.window("event_time", *window), "customer_id")
        .agg(F.count("*").alias("transactions"), F.sum("amount").alias("amount"))
        .selectExpr("window.start AS window_start", "window.end AS window_end", "customer_id", "transactions", "amount")
    )


JOB = Job(
    name="daily_counts",
    group="windows",
    summary="Number and sum of each customer's transactions in a day.",
    transform=transform,
    stateful=True,
    key="customer_id",
    lateness=LATENESS,
)
