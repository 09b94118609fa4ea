"""Cumulative counts: each customer's transactions of the day so far and their sum, at the end of every two hours.

Reads `transactions`, writes one row for each customer and step of two hours once the watermark has passed the step's
end: what the customer did from midnight (UTC) to that end. The first row of a day is for the step of the first
transaction; from then on there is one for each step to midnight, with or without new transactions. This is Flink's
CUMULATE, which Spark lacks: here it is a sliding window of a day, of which only the part after midnight counts
(docs/decisions/007-cumulative-windows.md).
State: one row for each customer and step still to come of a day on which the customer was seen, twelve at most. A row
is copied to twelve windows and kept in those after it, 6.5 on average; copies of a batch meet in a partial count before
the shuffle.
Watermark: the largest event time seen, less the lateness. A late row is dropped from the steps that have been written
and still counts in the later ones of its day. The last steps stay in state until newer rows arrive.
Restart: open steps come back with the checkpoint; a step is written once.
Upgrade: the lateness may change at a restart; the day, the step, the key and the aggregates may not (begin with a new
checkpoint and output).
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from ledgerops.ledger.jobs.job import LATENESS, Job

DAY = "1 day"
STEP = "2 hours"  # goes into a day without remainder


def transform(transactions: DataFrame, lateness: str = LATENESS) -> DataFrame:
    """Transactions in; window_start (midnight), window_end, customer_id, transactions (count) and amount (sum) out."""
    # the midnight before a window's end, in UTC: date_trunc would take the session's time zone
    end = F.unix_seconds("window.end")
    midnight = F.timestamp_seconds(end - 1 - F.pmod(end - 1, F.lit(86_400)))
    return (
        transactions.withWatermark("event_time", lateness)
        .withColumn("window", F.window("event_time", DAY, STEP))
        .where(F.col("event_time") >= midnight)
        .groupBy("window", "customer_id")
        .agg(F.count("*").alias("transactions"), F.sum("amount").alias("amount"))
        .withColumn("window_start", midnight)
        .selectExpr("window_start", "window.end AS window_end", "customer_id", "transactions", "amount")
    )


JOB = Job(
    name="cumulative_counts",
    group="windows",
    summary=f"Number and sum of each customer's transactions of the day so far, every {STEP}.",
    transform=transform,
    stateful=True,
    key="customer_id",
    lateness=LATENESS,
)
