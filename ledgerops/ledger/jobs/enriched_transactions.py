"""Enriched transactions: each transaction with its customer, waiting for the customer if need be.

Reads `transactions` and `customers`, writes every transaction exactly once: with the newest version of its customer
that has arrived, or, when none has arrived within MAX_WAIT_SECONDS, with customer columns of null and `enriched` false.
Rows are taken as they come: a transaction that was sent twice is written twice (see dedup_transactions).
State: the newest version of each customer, for good; each waiting transaction. Both as JSON text: Python workers are
handed three values a row and not seventeen, and a new column does not change the layout of the state.
Watermark: none. Timers run on the clock: with event-time timers Spark drops late rows (SPARK-51758), which would lose
transactions. A batch therefore runs at every trigger, input or none.
Restart: customers, waiting transactions and timers come back with the checkpoint; the clock of a repeated batch is
the one it had, so its rows are the same.
Upgrade: MAX_WAIT_SECONDS and columns may change at a restart; the names of the states may not.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from pyspark.sql import Row
from pyspark.sql import functions as F
from pyspark.sql.streaming.stateful_processor import StatefulProcessor

from ledgerops.ledger.jobs.job import Job
from ledgerops.ledger.plan.schemas import CUSTOMERS, TRANSACTIONS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.stateful_processor import (
        ExpiredTimerInfo,
        ListState,
        StatefulProcessorHandle,
        TimerValues,
        ValueState,
    )

MAX_WAIT_SECONDS = 60.0  # seconds; the generator sends a customer within seconds of its first transaction
CUSTOMER = ("sex", "first", "last", "email", "city", "state", "district_id")
JSON = {"timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX"}  # the default would cut microseconds
OUTPUT = "transaction STRING, customer STRING"

_Output = Row("transaction", "customer")


class Enrichment(StatefulProcessor):  # type: ignore[misc]  # pyspark is untyped here
    """One customer's transactions, held back until the customer is known or `wait` seconds have passed."""

    def __init__(self, wait: float = MAX_WAIT_SECONDS) -> None:
        self.wait = round(wait * 1000)

    def init(self, handle: StatefulProcessorHandle) -> None:
        self.handle = handle
        self.customer: ValueState = handle.getValueState("customer", "customer STRING, updated_at BIGINT")
        self.waiting: ListState = handle.getListState("waiting", "transaction STRING, since BIGINT")

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: TimerValues) -> Iterator[Row]:  # noqa: N803
        transactions, versions = [], []
        for row in rows:
            if row.customer is None:
                transactions.append(row.transaction)
            else:
                versions.append((row.customer, row.updated_at))
        known = self.customer.get()
        if versions:
            # an older version may come after a newer one; of two equally old the later to arrive counts
            newest = max(reversed(versions), key=lambda version: version[1])
            if known is None:
                transactions = [transaction for transaction, _ in self.waiting.get()] + transactions
                self.waiting.clear()
            if known is None or newest[1] >= known[1]:
                known = newest
                self.customer.update(newest)
        if known is not None:
            customer = known[0]
            return (_Output(transaction, customer) for transaction in transactions)
        self._hold(transactions, timerValues.getCurrentProcessingTimeInMs())
        return iter(())

    def handleExpiredTimer(
        self,
        key: Any,
        timerValues: TimerValues,  # noqa: N803
        expiredTimerInfo: ExpiredTimerInfo,  # noqa: N803
    ) -> Iterator[Row]:
        waiting = list(self.waiting.get())
        last = timerValues.getCurrentProcessingTimeInMs() - self.wait
        staying = [(transaction, since) for transaction, since in waiting if since > last]
        if staying:
            self.waiting.put(staying)
            self.handle.registerTimer(min(since for _, since in staying) + self.wait)
        else:
            self.waiting.clear()
        return (_Output(transaction, None) for transaction, since in waiting if since <= last)

    def close(self) -> None:
        """Nothing is held besides the state."""

    def _hold(self, transactions: list[str], now: int) -> None:
        if not self.waiting.exists():
            self.handle.registerTimer(now + self.wait)
        self.waiting.appendList([(transaction, now) for transaction in transactions])


def transform(transactions: DataFrame, customers: DataFrame, wait: float = MAX_WAIT_SECONDS) -> DataFrame:
    """Transactions and customers in; each transaction with its customer's columns and `enriched` (boolean) out."""
    rows = transactions.select(
        "customer_id",
        F.to_json(F.struct("*"), JSON).alias("transaction"),
        F.lit(None).cast("string").alias("customer"),
        F.lit(None).cast("bigint").alias("updated_at"),
    ).union(
        customers.select(
            "customer_id",
            F.lit(None).cast("string"),
            F.to_json(F.struct("*"), JSON),
            F.coalesce(F.unix_micros("updated_at"), F.lit(0)),
        )
    )
    return (
        rows.groupBy("customer_id")
        .transformWithState(
            statefulProcessor=Enrichment(wait), outputStructType=OUTPUT, outputMode="append", timeMode="processingTime"
        )
        .select(
            F.from_json("transaction", TRANSACTIONS, JSON).alias("transaction"),
            F.from_json("customer", CUSTOMERS, JSON).alias("customer"),
        )
        .select(
            "transaction.*",
            *(F.col(f"customer.{column}") for column in CUSTOMER),
            F.col("customer.updated_at").alias("customer_updated_at"),
            F.col("customer").isNotNull().alias("enriched"),
        )
    )


JOB = Job(
    name="enriched_transactions",
    group="stateful",
    summary="Every transaction with its customer, waiting for the customer if necessary.",
    transform=transform,
    stateful=True,
    inputs=("transactions", "customers"),
    key="customer_id",
    timers=True,
)
