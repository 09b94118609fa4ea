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
Upgrade: the ratios may change at a restart; the state and the key may not (begin with a new checkpoint and output).
"""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from pyspark.sql import Row
from pyspark.sql import functions as F
from pyspark.sql.streaming.stateful_processor import StatefulProcessor

from ledgerops.ledger.jobs.job import Job
from ledgerops.ledger.sources.workers import make_importable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.stateful_processor import StatefulProcessorHandle, TimerValues, ValueState

MONEY = "DECIMAL(28,2)"  # 28 digits are what Python's decimals add without rounding: 10^10 of the largest amounts
TOTALS = f"debits BIGINT, credits BIGINT, debit_amount {MONEY}, credit_amount {MONEY}"
OUTPUT = f"customer_id STRING, {TOTALS}"
NOTHING = (0, 0, Decimal("0.00"), Decimal("0.00"))

_Output = Row("customer_id", "debits", "credits", "debit_amount", "credit_amount")


class Totals(StatefulProcessor):  # type: ignore[misc]  # pyspark is untyped here
    """One customer's debits and credits, counted and summed."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        self.totals: ValueState = handle.getValueState("totals", TOTALS)

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: TimerValues) -> Iterator[Row]:  # noqa: N803
        debits, credits, debit_amount, credit_amount = self.totals.get() or NOTHING
        for row in rows:
            if row.debit:
                debits += 1
                debit_amount += row.amount or 0
            else:
                credits += 1
                credit_amount += row.amount or 0
        totals = (debits, credits, debit_amount, credit_amount)
        self.totals.update(totals)
        yield _Output(key[0], *totals)

    def close(self) -> None:
        """Nothing is held besides the state."""


def transform(debits: DataFrame, credits: DataFrame) -> DataFrame:
    """Debits and credits in; customer_id, both counts, both sums and their ratios (DOUBLE) out."""
    make_importable(debits.sparkSession)
    sides = (
        side.select("customer_id", F.lit(is_debit).alias("debit"), "amount")
        for side, is_debit in ((debits, True), (credits, False))
    )
    totals = (
        next(sides)
        .union(next(sides))
        .groupBy("customer_id")
        .transformWithState(statefulProcessor=Totals(), outputStructType=OUTPUT, outputMode="append", timeMode="none")
    )
    return totals.withColumns(
        {"count_ratio": _ratio("debits", "credits"), "amount_ratio": _ratio("debit_amount", "credit_amount")}
    )


def _ratio(debit: str, credit: str) -> Any:
    return F.when(F.col(credit) != 0, F.col(debit).cast("double") / F.col(credit).cast("double"))


JOB = Job(
    name="debit_credit_ratio",
    group="stateful",
    summary="Each customer's running debits, credits and their ratio.",
    transform=transform,
    stateful=True,
    inputs=("debits", "credits"),
    key="customer_id",
    upsert=("customer_id",),
)
