"""Customer transactions: every transaction with every version of its customer, whichever comes first.

Reads `transactions` and `customers`, writes one row for each transaction and each version of the customer that it
names, whatever their times: a regular join. When a new version of a customer comes, all earlier transactions of the
customer are written again with it. A transaction whose customer never comes is never written.
State: all transactions and all versions of customers, for good: nothing may be forgotten, since its match may come any
time. This is the example of a state without bound; a job that is to run for long is better served by
versioned_customers or enriched_transactions.
Watermark: none; no row is late.
Restart: both sides come back with the checkpoint; a match is written once.
Upgrade: neither the condition nor the columns may change (begin with a new checkpoint and output).
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from ledgerops.ledger.jobs.job import Job


def transform(transactions: DataFrame, customers: DataFrame) -> DataFrame:
    """Transactions and customers in; the columns of both out, `updated_at` as `customer_updated_at`."""
    versions = customers.withColumnRenamed("updated_at", "customer_updated_at").withColumnRenamed("customer_id", "id")
    return transactions.join(versions, F.col("customer_id") == F.col("id")).drop("id")


JOB = Job(
    name="customer_transactions",
    group="joins",
    summary="Every transaction with every version of its customer; its state grows for ever.",
    transform=transform,
    stateful=True,
    inputs=("transactions", "customers"),
    key="customer_id",
)
