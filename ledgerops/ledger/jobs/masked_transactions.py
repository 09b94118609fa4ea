"""Masked transactions: for readers who may not know whose money it is.

Reads `transactions`, writes its rows with account_id and customer_id masked: a star for each character but the last
four. An id of four characters or fewer becomes all stars, since showing it whole would mask nothing; null stays null.
The other columns are unchanged. Masked ids are no keys any more: two customers may have the same.
State: none. Watermark: none, so no row is ever too late.
Restart: goes on with the first row that was not committed. Upgrade: how ids are masked may change at any restart; rows
already written stay.
Money is conserved: rows and their amount are booked where they enter and where they leave.
"""

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

import ledgerops
from ledgerops.ledger.jobs.job import Job

SHOWN_CHARACTERS = 4  # as on a card's receipt
MASKED = ("account_id", "customer_id")


def mask(ids: pa.Array) -> pa.Array:
    """Every id with only its last SHOWN_CHARACTERS characters left, a column at a time."""
    length = pc.utf8_length(ids)
    short = pc.less_equal(length, SHOWN_CHARACTERS)
    stars = pc.binary_repeat(pa.scalar("*", ids.type), pc.if_else(short, length, pc.subtract(length, SHOWN_CHARACTERS)))
    shown = pc.if_else(short, pa.scalar("", ids.type), pc.utf8_slice_codeunits(ids, -SHOWN_CHARACTERS))
    return pc.binary_join_element_wise(stars, shown, pa.scalar("", ids.type))


def transform(transactions: DataFrame) -> DataFrame:
    """Transactions in; the same with both ids masked out."""
    masked = F.arrow_udf(mask, "string")
    rows = ledgerops.book(transactions, "in", amount="amount")
    return ledgerops.book(rows.withColumns({column: masked(column) for column in MASKED}), "out", amount="amount")


JOB = Job(
    name="masked_transactions",
    group="udfs",
    summary=f"Every transaction with its ids masked except for the last {SHOWN_CHARACTERS} characters.",
    transform=transform,
    stateful=False,
)
