"""Sliding counts: each customer's transactions of the last day and their sum, anew every two hours.

Reads `transactions`, writes one row for each customer and window once the watermark has passed the window's end.
Windows are a day (UTC) long and begin every two hours, so a transaction counts in twelve of them.
State: one row for each customer and open window, twelve times that of daily_counts. Every row is copied twelve times
before it is counted; the copies of a batch meet in a partial count before the shuffle, so the copying costs
processor time of the map tasks, and the shuffle and the state get at most twelve rows for each customer and batch
(more only if the batch spans more than two hours).
Watermark: the largest event time seen, less the lateness; copies of a row in windows that have been closed are dropped,
those in open windows count. The windows of the last day stay in state until newer rows arrive.
Restart: open windows come back with the checkpoint; a window is written once.
Upgrade: the lateness may change at a restart; the windows, the key and the aggregates may not (begin with a new
checkpoint and output).
"""

from pyspark.sql import DataFrame

from ledgerops.ledger.jobs.daily_counts import WINDOW, count_in_windows
from ledgerops.ledger.jobs.job import LATENESS, Job

SLIDE = "2 hours"


def transform(transactions: DataFrame, lateness: str = LATENESS) -> DataFrame:
    """Transactions in; window_start, window_end, customer_id, transactions (count) and amount (sum) out."""
    return count_in_windows(transactions, lateness, WINDOW, SLIDE)


JOB = Job(
    name="sliding_counts",
    group="windows",
    summary=f"Number and sum of each customer's transactions in a day, updated every {SLIDE}.",
    transform=transform,
    stateful=True,
    key="customer_id",
    lateness=LATENESS,
)
