"""Spending profile: how each customer spends in a day (UTC), by an aggregate of our own.

Reads `transactions`, of which the debits count; writes one row for each customer and day once the watermark has passed
the end of the day: payments (count), total, median (exact: of an even number the mean of the middle two), largest, and
cash_share (the part of the total that was drawn in cash, null of a total of 0). Debits without an amount do not count.
State: the amounts of each customer and day still open, 8 bytes each and as much again for one in cash: an aggregate of
Python cannot be merged by Spark, so what it aggregates is kept. Each batch reads and writes the whole list of every
customer that it touches: with thousands of payments of one customer in a day, use the built-in percentile_approx, whose
state does not grow. Watermark: the largest event time of a debit, less the lateness; rows of a day that has been closed
are dropped.
Restart: open days come back with the checkpoint; a day is written once.
Upgrade: what is made of the lists (`profile`) and the lateness may change at a restart, also for days still open; the
window, the key and the lists may not (begin with a new checkpoint and output).

Spark has no user-defined aggregate for streams: it refuses a pandas or Arrow one there ("Streaming aggregation doesn't
support group aggregate pandas UDF", 4.2). So Spark collects, in the window that the watermark bounds, and an Arrow UDF
makes the profile of each list once, when it is whole.
"""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from ledgerops.ledger.jobs.job import LATENESS, Job
from ledgerops.ledger.plan import arrow

WINDOW = "1 day"
CASH = "Withdrawal in Cash"
PROFILE = "payments INT, total DECIMAL(18,2), median DECIMAL(18,3), largest DECIMAL(18,2), cash_share DOUBLE"
_CENTS = pa.scalar(100, pa.decimal128(3, 0))


def profile(amounts: pa.Array, cash: pa.Array) -> pa.Array:
    """The columns of PROFILE for each pair of lists of amounts: all of them, and those in cash; none is empty."""
    cents, starts, ends = _lists(amounts)
    group = np.repeat(np.arange(len(amounts)), ends - starts)
    ordered = cents[np.lexsort((cents, group))]
    payments = ends - starts
    total = _sums(cents, starts, ends)
    lower, upper = ordered[starts + (payments - 1) // 2], ordered[starts + payments // 2]
    in_cash = _sums(*_lists(cash))
    with np.errstate(divide="ignore", invalid="ignore"):
        cash_share = in_cash / total
    return pa.StructArray.from_arrays(
        [
            pa.array(payments, pa.int32()),
            arrow.money(total),
            arrow.money((lower + upper) * 5, scale=3),  # half of cents, in tenths of a cent
            arrow.money(ordered[ends - 1]),
            pa.array(cash_share, pa.float64(), mask=total == 0),
        ],
        names=["payments", "total", "median", "largest", "cash_share"],
    )


def transform(transactions: DataFrame, lateness: str = LATENESS) -> DataFrame:
    """Transactions in; window_start, window_end, customer_id and the columns of PROFILE out."""
    made = F.arrow_udf(profile, f"struct<{PROFILE.replace(' ', ':').replace(',:', ', ')}>")
    return (
        transactions.where((F.col("type") == "Debit") & F.col("amount").isNotNull())
        .withWatermark("event_time", lateness)
        .groupBy(F.window("event_time", WINDOW), "customer_id")
        .agg(
            F.collect_list("amount").alias("amounts"),
            F.collect_list(F.when(F.col("operation") == CASH, F.col("amount"))).alias("cash"),  # takes no null
        )
        .select("window", "customer_id", made("amounts", "cash").alias("profile"))
        .selectExpr("window.start AS window_start", "window.end AS window_end", "customer_id", "profile.*")
    )


def _lists(lists: pa.Array) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """The amounts of all lists in cents, and where each list starts and ends among them."""
    offsets = lists.offsets.to_numpy().astype(np.int64)
    offsets -= offsets[0]  # an array may be a slice of a longer one
    cents = pc.cast(pc.multiply(lists.flatten(), _CENTS), pa.int64()).to_numpy(zero_copy_only=False)
    return cents, offsets[:-1], offsets[1:]


def _sums(cents: NDArray[np.int64], starts: NDArray[np.int64], ends: NDArray[np.int64]) -> NDArray[np.int64]:
    upto = np.concatenate([[0], np.cumsum(cents)])
    sums: NDArray[np.int64] = upto[ends] - upto[starts]
    return sums


JOB = Job(
    name="spending_profile",
    group="udfs",
    summary="Count, sum, median, largest and share of cash of each customer's debits in a day.",
    transform=transform,
    stateful=True,
    key="customer_id",
    lateness=LATENESS,
)
