"""Versioned customers: every transaction with its customer as of the transaction's time, a temporal join.

Reads `transactions` and `customers`, writes every transaction that is in time exactly once, with the version of its
customer that was valid then: the newest one whose `updated_at` is not after the event time. If there is none, the
customer's columns are null and `matched` is false: a left join. Of two versions with the same `updated_at` the later to
arrive counts. Spark has no temporal join, so this one has two parts. Transactions wait, as a list for each customer and
WAIT of event time, in an ordinary aggregation, which hands them on once the watermark has passed. Versions are kept by
transformWithState, which puts them beside a customer's lists; Spark's own functions choose among them. So Python hands
on texts, sees a row for each list and not for each transaction, and needs no timer.
State: the transactions of the lateness and of WAIT; of each customer the version in force at the last transactions
that were written, and the newer ones. What no later transaction can need is dropped when the customer's next
transactions are written.
Watermark: the largest event time of transactions alone, less the lateness. Customers neither move it nor hold it back:
they are mostly idle, and the lower of two watermarks would keep all transactions waiting for their next change. The
price: a version counts for what is still waiting or comes later; one that arrives after its transactions were written
does not change these. Customers are never late. Transactions whose WAIT has been closed are dropped, and counted by
Spark as one for each customer and WAIT in a batch. The last transactions stay in state until newer ones arrive.
Restart: waiting transactions and versions come back with the checkpoint; a transaction is written once.
Upgrade: the lateness may change at a restart, and the columns of customers; WAIT, the columns of transactions and the
names of the states may not (begin with a new checkpoint and output).
"""

from collections.abc import Iterator
from typing import Any

from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle, TimerValues, ValueState

from ledgerops.ledger.jobs.job import LATENESS, Job
from ledgerops.ledger.jobs.json_state import CUSTOMER_COLUMNS, JSON
from ledgerops.ledger.plan.schemas import CUSTOMERS, TRANSACTIONS

WAIT = "10 seconds"  # of event time: short beside the lateness, long enough for a list to be worth a row
FIRST_MICROS = -(2**63)  # a version without a time holds from the beginning
VERSIONS = "since ARRAY<BIGINT>, customers ARRAY<STRING>"  # microseconds since the epoch, ascending, and JSON
OUTPUT = f"lists ARRAY<STRING>, {VERSIONS}"

_Output = Row("lists", "since", "customers")


class Versions(StatefulProcessor):  # type: ignore[misc]  # pyspark is untyped here
    """One customer's versions, which are put beside the lists of transactions that are handed on."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        self.versions: ValueState = handle.getValueState("versions", VERSIONS)

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: TimerValues) -> Iterator[Row]:  # noqa: N803
        held = self.versions.get()
        since, customers = ([], []) if held is None else (list(held[0]), list(held[1]))
        lists, new = [], []
        for row in rows:
            if row.customer is None:
                lists.append(row)
            else:
                new.append((row.since, row.customer))
        if new:
            # of equally old ones the later to arrive
            versions = {**dict(zip(since, customers, strict=True)), **dict(new)}
            since = sorted(versions)
            customers = [versions[at] for at in since]
        made = [_Output([row.transactions for row in lists], since, customers)] if lists else []
        # lists are closed in the order of their time: what comes later is of a later time than the last of these
        needless = _needless(since, max((row.ends for row in lists), default=FIRST_MICROS))
        if new or needless:
            self.versions.update((since[needless:], customers[needless:]))
        return iter(made)


def _needless(since: list[int], ends: int) -> int:
    """How many of the first versions no transaction at or after `ends` can need."""
    return max(sum(at <= ends for at in since) - 1, 0)


def transform(transactions: DataFrame, customers: DataFrame, lateness: str = LATENESS) -> DataFrame:
    """Transactions and customers in; each transaction with its customer's columns and `matched` (boolean) out."""
    lists = (
        transactions.withWatermark("event_time", lateness)
        .groupBy(F.window("event_time", WAIT), "customer_id")
        .agg(F.collect_list(F.struct(*transactions.columns)).alias("transactions"))
        .select(
            "customer_id",
            F.to_json("transactions", JSON).alias("transactions"),
            F.unix_micros("window.end").alias("ends"),
            F.lit(None).cast("string").alias("customer"),
            F.lit(None).cast("bigint").alias("since"),
        )
    )
    versions = customers.select(
        "customer_id",
        F.lit(None).cast("string"),
        F.lit(None).cast("bigint"),
        F.to_json(F.struct("*"), JSON),
        F.coalesce(F.unix_micros("updated_at"), F.lit(FIRST_MICROS)),
    )
    return (
        lists.union(versions)
        .groupBy("customer_id")
        .transformWithState(statefulProcessor=Versions(), outputStructType=OUTPUT, outputMode="append", timeMode="none")
        # read before the lists are opened: once a batch, and not for each transaction
        .withColumn("customers", F.transform("customers", lambda text: F.from_json(text, CUSTOMERS, JSON)))
        .select(F.explode("lists").alias("transactions"), "since", "customers")
        .select(
            F.explode(F.from_json("transactions", f"ARRAY<STRUCT<{TRANSACTIONS}>>", JSON)).alias("transaction"),
            "since",
            "customers",
        )
        .select("transaction", _as_of(F.unix_micros("transaction.event_time")).alias("customer"))
        .select(
            "transaction.*",
            *(F.col(f"customer.{column}") for column in CUSTOMER_COLUMNS),
            F.col("customer.updated_at").alias("customer_updated_at"),
            F.col("customer").isNotNull().alias("matched"),
        )
    )


def _as_of(at: Column) -> Column:
    """The customer of the newest version that is not after `at`; null if there is none."""
    versions = F.size(F.filter("since", lambda since: since <= at))
    return F.when(versions > 0, F.element_at("customers", versions))


JOB = Job(
    name="versioned_customers",
    group="joins",
    summary="Every transaction with its customer as of the transaction's time.",
    transform=transform,
    stateful=True,
    inputs=("transactions", "customers"),
    key="customer_id",
    lateness=LATENESS,
)
