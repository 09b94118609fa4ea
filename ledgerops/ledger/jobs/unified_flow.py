"""Unified flow: debits and credits in one stream, as money that leaves and money that comes.

Reads `debits` and `credits`, writes every row of both, unchanged, with `signed_amount`: the amount, below zero for a
debit. The side a row came in on decides, not its `type`. The sum over the output is the credits less the debits.
State: none. Watermark: one for each input, the largest event time seen on it less the lateness; the query's is the
lower of both, so that an idle input holds it back (spark.sql.streaming.multipleWatermarkPolicy = max would let the
faster one lead, for good: the policy is fixed by the checkpoint). Nothing here is dropped by it: a union forgets
nothing. It is there for what reads on: the metrics, and operators that are put behind the union.
Restart: goes on with the first row of each input that was not committed; both watermarks go on where they were.
Upgrade: the lateness may change at a restart; a third input may not be added without a new checkpoint.
Money is conserved: rows and their amount are booked where they enter, on either side, and where they leave.
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

import ledgerops
from ledgerops.ledger.jobs.job import LATENESS, Job


def transform(debits: DataFrame, credits: DataFrame, lateness: str = LATENESS) -> DataFrame:
    """Debits and credits in; the rows of both with `signed_amount` out."""
    paid = ledgerops.book(debits, "in", amount="amount", name="debits")
    received = ledgerops.book(credits, "in", amount="amount", name="credits")
    outgoing = paid.withWatermark("event_time", lateness).withColumn("signed_amount", -F.col("amount"))
    incoming = received.withWatermark("event_time", lateness).withColumn("signed_amount", F.col("amount"))
    return ledgerops.book(outgoing.unionByName(incoming), "out", amount="amount")


JOB = Job(
    name="unified_flow",
    group="stateful",
    summary="Debits and credits in one flow with a signed amount.",
    transform=transform,
    stateful=False,
    inputs=("debits", "credits"),
    lateness=LATENESS,
)
