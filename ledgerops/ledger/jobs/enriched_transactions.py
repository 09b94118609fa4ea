"""Enriched transactions: each transaction with its customer, waiting for the customer if need be.

Reads `transactions` and `customers`, writes every transaction exactly once: with the newest version of its customer
that has arrived, or, when none has arrived within MAX_WAIT_SECONDS, with customer columns of null and `enriched` false.
Rows are taken as they come: a transaction that was sent twice is written twice (see dedup_transactions).
State: the newest version of each customer, for good; each waiting transaction. Both as JSON text: Python workers are
handed four values a row and not seventeen, and a new column does not change the layout of the state. Customers share
STATE_KEYS keys of state: Spark's calls and Arrow batches cost as much for a key with one row as for one with hundreds.
Watermark: none. Timers run on the clock: with event-time timers Spark drops late rows (SPARK-51758), which would lose
transactions. A batch therefore runs at every trigger, input or none.
Restart: customers, waiting transactions and timers come back with the checkpoint; the clock of a repeated batch is
the one it had, so its rows are the same.
Upgrade: MAX_WAIT_SECONDS and columns may change at a restart; the names of the states and STATE_KEYS may not.
"""

from collections.abc import Iterator, Set
from itertools import islice
from typing import Any

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F
from pyspark.sql.streaming.stateful_processor import (
    ExpiredTimerInfo,
    MapState,
    StatefulProcessor,
    StatefulProcessorHandle,
    TimerValues,
)

from ledgerops.ledger.jobs.job import Job
from ledgerops.ledger.jobs.json_state import CUSTOMER_COLUMNS, JSON, STATE_KEYS
from ledgerops.ledger.plan.schemas import CUSTOMERS, TRANSACTIONS

MAX_WAIT_SECONDS = 60.0  # the generator sends a customer within seconds of its first transaction
# Spark sends a page of pairs in about the time of so many single answers: so asking for all is cheaper up to here.
MAX_PAIRS_PER_CUSTOMER = 8
ID = "customer_id STRING"
OUTPUT = "transaction STRING, customer STRING"

_Output = Row("transaction", "customer")


class Enrichment(StatefulProcessor):  # type: ignore[misc]  # pyspark is untyped here
    """Transactions of one group of customers, held back until the customer is known or `wait` seconds have passed."""

    def __init__(self, wait: float = MAX_WAIT_SECONDS) -> None:
        self.wait = round(wait * 1000)

    def init(self, handle: StatefulProcessorHandle) -> None:
        self.handle = handle
        self.customers: MapState = handle.getMapState("customers", ID, "customer STRING, updated_at BIGINT")
        self.waiting: MapState = handle.getMapState("waiting", ID, "transactions ARRAY<STRING>, since ARRAY<BIGINT>")

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: TimerValues) -> Iterator[Row]:  # noqa: N803
        transactions: dict[str, list[str]] = {}
        versions: dict[str, tuple[str, int]] = {}
        for _, customer_id, text, updated_at in rows:
            if updated_at is None:
                transactions.setdefault(customer_id, []).append(text)
            # an older version may come after a newer one; of two equally old the later to arrive counts
            elif customer_id not in versions or updated_at >= versions[customer_id][1]:
                versions[customer_id] = (text, updated_at)
        known = self._known(transactions.keys() | versions.keys())
        for customer_id, newest in versions.items():
            before = known.get(customer_id)
            if before is None or newest[1] >= before[1]:
                known[customer_id] = newest
                self.customers.updateValue((customer_id,), newest)
            if before is None:
                transactions[customer_id] = self._released(customer_id) + transactions.get(customer_id, [])
        unknown = {}
        for customer_id, texts in transactions.items():
            if customer_id in known:
                customer = known[customer_id][0]
                yield from (_Output(text, customer) for text in texts)
            else:
                unknown[customer_id] = texts
        if unknown:
            self._hold(unknown, timerValues.getCurrentProcessingTimeInMs())

    def handleExpiredTimer(
        self,
        key: Any,
        timerValues: TimerValues,  # noqa: N803
        expiredTimerInfo: ExpiredTimerInfo,  # noqa: N803
    ) -> Iterator[Row]:
        last = timerValues.getCurrentProcessingTimeInMs() - self.wait
        times: set[int] = set()
        for customer, (transactions, since) in list(self.waiting.iterator()):
            held = list(zip(transactions, since, strict=True))
            staying = [each for each in held if each[1] > last]
            times.update(at for _, at in staying)
            if not staying:
                self.waiting.removeKey(customer)
            elif len(staying) < len(held):
                self.waiting.updateValue(customer, tuple(map(list, zip(*staying, strict=True))))
            yield from (_Output(transaction, None) for transaction, at in held if at <= last)
        if times:  # its own timer may have expired: `wait` may have been shorter before a restart
            self.handle.registerTimer(min(times) + self.wait)

    def _known(self, customer_ids: Set[str]) -> dict[str, tuple[str, int]]:
        """The newest version of each of these customers that has one, and perhaps of others."""
        most = MAX_PAIRS_PER_CUSTOMER * len(customer_ids)
        found = {customer_id: version for (customer_id,), version in islice(self.customers.iterator(), most + 1)}
        if len(found) > most:
            for customer_id in customer_ids - found.keys():
                version = self.customers.getValue((customer_id,))
                if version is not None:
                    found[customer_id] = tuple(version)
        return found

    def _released(self, customer_id: str) -> list[str]:
        """The transactions that waited for a customer; they wait no longer."""
        held = self.waiting.getValue((customer_id,))
        if held is None:
            return []
        self.waiting.removeKey((customer_id,))
        return list(held[0])

    def _hold(self, transactions: dict[str, list[str]], now: int) -> None:
        for customer_id, texts in transactions.items():
            held, since = self.waiting.getValue((customer_id,)) or ((), ())
            self.waiting.updateValue((customer_id,), ([*held, *texts], [*since, *[now] * len(texts)]))
        self.handle.registerTimer(now + self.wait)


def transform(transactions: DataFrame, customers: DataFrame, wait: float = MAX_WAIT_SECONDS) -> DataFrame:
    """Transactions and customers in; each transaction with its customer's columns and `enriched` (boolean) out."""
    group = F.pmod(F.xxhash64("customer_id"), F.lit(STATE_KEYS)).cast("int").alias("group")
    rows = transactions.select(
        group,
        "customer_id",
        F.to_json(F.struct("*"), JSON).alias("text"),
        F.lit(None).cast("bigint").alias("updated_at"),
    ).union(
        customers.select(
            group, "customer_id", F.to_json(F.struct("*"), JSON), F.coalesce(F.unix_micros("updated_at"), F.lit(0))
        )
    )
    return (
        rows.groupBy("group")
        .transformWithState(
            statefulProcessor=Enrichment(wait), outputStructType=OUTPUT, outputMode="append", timeMode="processingTime"
        )
        .select(
            F.from_json("transaction", TRANSACTIONS, JSON).alias("transaction"),
            F.from_json("customer", CUSTOMERS, JSON).alias("customer"),
        )
        .select(
            "transaction.*",
            *(F.col(f"customer.{column}") for column in CUSTOMER_COLUMNS),
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
