"""Debit to credit ratio: for each customer, how often and how much goes out for what comes in.

Reads `debits` and `credits`; writes, for each batch and each customer with rows in it, the running totals since the
query first began: debits and credits (counts), debit_amount and credit_amount (sums), count_ratio and amount_ratio
(debits to credits; null while there is no credit, or no money in them). A later row of a customer replaces the earlier:
it has more debits and credits. How rows fall into batches decides how many rows there are, never what the last one
says. A null amount counts as a transaction and adds nothing; rows are taken as they come, copies too.
State: four numbers for each customer, for good: a time to live would make the totals of a customer who pauses begin
again, and the row would not show it. Some 100 bytes each, so a million customers are 100 MB on disk.
Watermark: none, so no row is ever too late, and the order of rows does not matter.
Restart: the totals come back with the checkpoint; a repeated batch starts from those before it, so nothing counts
twice.
Upgrade: the ratios may change at a restart; the totals and the key may not (begin with a new checkpoint and output).
"""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from ledgerops.ledger.jobs.job import Job

MONEY = "DECIMAL(28,2)"  # what Spark makes of the sum of 18 digits: room for 10^10 of the largest amounts


def transform(debits: DataFrame, credits: DataFrame) -> DataFrame:
    """Debits and credits in; customer_id, both counts, both sums and their ratios (DOUBLE) out."""
    sides = (
        side.select("customer_id", F.lit(is_debit).alias("debit"), "amount")
        for side, is_debit in ((debits, True), (credits, False))
    )
    debit, credit = F.col("debit"), ~F.col("debit")
    totals = (
        next(sides)
        .union(next(sides))
        .groupBy("customer_id")
        .agg(
            F.count_if(debit).alias("debits"),
            F.count_if(credit).alias("credits"),
            _sum(debit).alias("debit_amount"),
            _sum(credit).alias("credit_amount"),
        )
    )
    return totals.withColumns(
        {"count_ratio": _ratio("debits", "credits"), "amount_ratio": _ratio("debit_amount", "credit_amount")}
    )


def _sum(kind: Column) -> Column:
    return F.coalesce(F.sum(F.when(kind, F.col("amount"))), F.lit(0)).cast(MONEY)


def _ratio(debit: str, credit: str) -> Column:
    return F.when(F.col(credit) != 0, F.col(debit).cast("double") / F.col(credit).cast("double"))


JOB = Job(
    name="debit_credit_ratio",
    group="stateful",
    summary="Each customer's running debits, credits and their ratio.",
    transform=transform,
    stateful=True,
    inputs=("debits", "credits"),
    output_mode="update",
    key="customer_id",
    upsert=("customer_id",),
)
