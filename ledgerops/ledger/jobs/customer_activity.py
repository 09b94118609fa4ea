"""Customer activity: how many transactions each customer has made so far, and their sum, of the busy ones.

Reads `transactions`, writes a row for each customer above MIN_TRANSACTIONS whenever one of theirs arrives, which
replaces the row before (`customer_id` identifies it). Rows without a customer are not counted; a transaction that was
sent twice counts twice (see dedup_transactions).
State: one row for each customer, below MIN_TRANSACTIONS too, for good: it grows with the number of customers and not
with time.
Watermark: none, so no row is ever too late.
Restart: the counts come back with the checkpoint; a repeated batch gives the same rows, which replace themselves.
Upgrade: MIN_TRANSACTIONS may change at a restart: a customer is written with the next transaction, and one already
written stays; the key and the aggregates may not.
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from ledgerops.ledger.jobs.job import Job

# More than any of the bank's customers makes in its fifteen months (131): who is above it is a machine or a merchant.
# The generator's customers come to it in minutes with few keys, a whale in seconds.
MIN_TRANSACTIONS = 300


def transform(transactions: DataFrame, least: int = MIN_TRANSACTIONS) -> DataFrame:
    """Transactions in; customer_id, transactions (count) and amount (sum) of customers with more than `least` out."""
    return (
        transactions.where(F.col("customer_id").isNotNull())
        .groupBy("customer_id")
        .agg(F.count("*").alias("transactions"), F.sum("amount").alias("amount"))
        .where(F.col("transactions") > least)
    )


JOB = Job(
    name="customer_activity",
    group="sql",
    summary=f"Number and sum of the transactions of each customer with more than {MIN_TRANSACTIONS}.",
    transform=transform,
    stateful=True,
    output_mode="update",
    key="customer_id",
    upsert=("customer_id",),
)
