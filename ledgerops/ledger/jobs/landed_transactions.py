"""Landed transactions: the rows as they came, the first of three tables (bronze, silver, gold).

Reads `transactions`, writes its rows unchanged, copies too. With `--sink delta` the jobs masked_transactions (silver)
and daily_counts (gold) read the table of the one before them, where that runs as well.
State: none. Watermark: none, so no row is ever too late.
Restart: goes on with the first row that was not committed. Upgrade: nothing is kept that could change.
"""

from pyspark.sql import DataFrame

from ledgerops.ledger.jobs.job import Job


def transform(transactions: DataFrame) -> DataFrame:
    """Transactions in; the same out."""
    return transactions


JOB = Job(
    name="landed_transactions",
    group="sql",
    summary="Every transaction as it came, for other queries to read.",
    transform=transform,
    stateful=False,
)
