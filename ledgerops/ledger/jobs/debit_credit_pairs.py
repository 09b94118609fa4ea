"""Debit and credit pairs: larger sums of one customer that go out within an hour of coming in, or the reverse.

Reads `transactions` above MIN_AMOUNT, once for debits and credits; writes one row for each debit and credit of the same
customer whose event times are at most an hour apart. State: such debits and credits of the last hour plus the lateness,
in memory: 126 MB at the 600 rows per second of the default plan.
Watermark: each side's largest event time seen, less the lateness; the lower of both counts, so that while one kind is
absent nothing is dropped and nothing is forgotten. A row behind it is dropped.
Restart: both sides come back with the checkpoint; a pair is written once.
Upgrade: the lateness may change at a restart; the condition and the columns may not.
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from ledgerops.ledger.jobs.job import LATENESS, Job

WITHIN, WITHIN_SECONDS = "1 hour", 3600.0
# Pairs grow with the square of a customer's rows: without a limit the default plan makes 13 million in its first
# three minutes and 5 thousand million in an hour; people who look at pairs look at larger sums.
MIN_AMOUNT = 10_000
COLUMNS = ("transaction_id", "customer_id", "event_time", "amount")


def transform(transactions: DataFrame, lateness: str = LATENESS) -> DataFrame:
    """Transactions in; customer_id and the id, event time and amount of debit and credit out, a row for each pair."""
    large = transactions.where(F.col("amount") > MIN_AMOUNT).select("type", *COLUMNS).repartition("customer_id")
    # Both sides begin with the same exchange, so Spark reads the source once. Without the observation each side's
    # filter would move below it, and make it another one.
    large = large.observe("large_transactions", F.count(F.lit(1)).alias("rows"))
    debit, credit = (_side(large, kind, lateness) for kind in ("debit", "credit"))
    # Numbers of seconds, exact to the microsecond: to add an interval Spark looks at the calendar, which takes a tenth
    # of this job's CPU time. It derives what state it may forget from both.
    debited, credited = (F.col(f"{kind}_event_time").cast("double") for kind in ("debit", "credit"))
    return debit.join(
        credit,
        (F.col("debit_customer_id") == F.col("credit_customer_id"))
        & (credited >= debited - WITHIN_SECONDS)
        & (credited <= debited + WITHIN_SECONDS),
    ).selectExpr(
        *("debit_customer_id AS customer_id", "debit_transaction_id", "debit_event_time", "debit_amount"),
        *("credit_transaction_id", "credit_event_time", "credit_amount"),
    )


def _side(large: DataFrame, kind: str, lateness: str) -> DataFrame:
    return (
        large.where(F.col("type") == kind.capitalize())
        .select(*(F.col(column).alias(f"{kind}_{column}") for column in COLUMNS))
        .withWatermark(f"{kind}_event_time", lateness)
    )


JOB = Job(
    name="debit_credit_pairs",
    group="joins",
    summary=f"Debits and credits above {MIN_AMOUNT:,} of one customer within {WITHIN}.",
    transform=transform,
    stateful=True,
    fits_heap=True,
    key="customer_id",
    lateness=LATENESS,
)
