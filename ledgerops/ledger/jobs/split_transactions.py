"""Split transactions: debits and credits, each to an output of their own.

Reads `transactions`, writes each of its rows unchanged to `transactions.debits` or `transactions.credits`; a row of
neither type, which no producer should send, to `split_transactions`.
State: none. Watermark: none, so no row is ever too late.
Restart: goes on with the first row that was not committed.
Upgrade: the outputs may be renamed at any restart; rows already written stay where they are.
Money is conserved: rows and their amount are booked where they enter and where they leave.
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

import ledgerops
from ledgerops.ledger.jobs.job import Job

DEBITS, CREDITS = "transactions.debits", "transactions.credits"


def transform(transactions: DataFrame) -> DataFrame:
    """Transactions in; the same with the name of their output in `topic` out."""
    kind = F.col("type")
    topic = F.when(kind == "Debit", DEBITS).when(kind == "Credit", CREDITS).otherwise("split_transactions")
    rows = ledgerops.book(transactions, "in", amount="amount")
    return ledgerops.book(rows.withColumn("topic", topic), "out", amount="amount")


JOB = Job(
    name="split_transactions",
    group="sql",
    summary="Debits and credits, written to separate outputs.",
    transform=transform,
    stateful=False,
    key="customer_id",
    route="topic",
    routes=(DEBITS, CREDITS),
)
