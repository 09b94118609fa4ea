"""Real checkpoints of small queries, and what their state must hold."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.sql import Row
from pyspark.sql import functions as F
from pyspark.sql.streaming.stateful_processor import StatefulProcessor

from ledgerops.checkpoint.state_rows import temporary_conf
from ledgerops.ledger.jobs import (
    daily_counts,
    debit_credit_pairs,
    dedup_transactions,
    enriched_transactions,
    large_credits,
)
from ledgerops.ledger.jobs.job import Job
from ledgerops.ledger.run.start import SESSION_CONF
from tests.ledger.jobs.feed import Feed, customer, transaction

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

STORE = "spark.sql.streaming.stateStore"
ROCKSDB = dict(SESSION_CONF)
SNAPSHOTS = {**SESSION_CONF, f"{STORE}.rocksdb.changelogCheckpointing.enabled": "false"}
HDFS = {
    **SESSION_CONF,
    f"{STORE}.providerClass": "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider",
}
HOUR = 3_600_000


class Notes(StatefulProcessor):
    """One of each kind of state: the last amount (kept an hour), all ids, how many of each type, and a timer."""

    def init(self, handle: Any) -> None:
        self.handle = handle
        self.last = handle.getValueState("last", "amount STRING", HOUR)
        self.ids = handle.getListState("ids", "id STRING")
        self.types = handle.getMapState("types", "type STRING", "count INT")

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:  # noqa: N803
        for row in rows:
            self.last.update((row.amount,))
            self.ids.appendValue((row.transaction_id,))
            before = self.types.getValue((row.type,))[0] if self.types.containsKey((row.type,)) else 0
            self.types.updateValue((row.type,), (before + 1,))
        if not list(self.handle.listTimers()):
            self.handle.registerTimer(timerValues.getCurrentProcessingTimeInMs() + HOUR)
        return iter(())

    def close(self) -> None:
        """Nothing is held besides the state."""


def _noted(transactions: DataFrame) -> DataFrame:
    return (
        transactions.selectExpr("customer_id", "transaction_id", "type", "CAST(amount AS STRING) AS amount")
        .groupBy("customer_id")
        .transformWithState(
            statefulProcessor=Notes(), outputStructType="x STRING", outputMode="append", timeMode="processingTime"
        )
    )


def _counted(transactions: DataFrame) -> DataFrame:
    """Two operators, one after the other."""
    once = transactions.withWatermark("event_time", "1 minute").dropDuplicatesWithinWatermark(["transaction_id"])
    return once.groupBy(F.window("event_time", "1 day"), "customer_id").count().select("customer_id", "count")


TWO = Job(name="two", group="windows", summary="s", transform=_counted, stateful=True)
NOTES = Job(name="notes", group="stateful", summary="s", transform=_noted, stateful=True, timers=True)


def _total(transactions: DataFrame) -> DataFrame:
    return transactions.groupBy().agg(F.count("*").alias("transactions"))


def _first(transactions: DataFrame) -> DataFrame:
    return transactions.limit(30).select("transaction_id")


ACCOUNTS = {f"C{n}": 9_000_000 + n for n in range(7)}  # numbers that name a customer
ACCOUNT = "CAST(substring(customer_id, 2) AS BIGINT) + 9000000 AS account_id"


class Seen(StatefulProcessor):
    """A customer's number in each place where a state may hold one: in the key, in a map's own, and in values."""

    def init(self, handle: Any) -> None:
        self.last = handle.getValueState("last", "account_id BIGINT, number INT")
        self.counts = handle.getMapState("counts", "account_id BIGINT", "account_id BIGINT, rows INT")

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:  # noqa: N803
        accounts = [row.account_id for row in rows]
        self.last.update((accounts[0], len(accounts)))
        self.counts.updateValue((accounts[0],), (accounts[0], len(accounts)))
        return iter(())

    def close(self) -> None:
        """Nothing is held besides the state."""


def _seen(transactions: DataFrame) -> DataFrame:
    keyed = transactions.selectExpr(ACCOUNT, "type").withColumn("id", F.struct("account_id", "type"))
    return keyed.groupBy("id").transformWithState(
        statefulProcessor=Seen(), outputStructType="x STRING", outputMode="append", timeMode="none"
    )


def _numbered(transactions: DataFrame) -> DataFrame:
    """A join by a number."""
    debits, credits = (
        transactions.where(f"type = '{kind}'").selectExpr(ACCOUNT, "event_time").withWatermark("event_time", "1 minute")
        for kind in ("Debit", "Credit")
    )
    near = "d.account_id = c.account_id AND c.event_time BETWEEN d.event_time AND d.event_time + INTERVAL 1 HOUR"
    return debits.alias("d").join(credits.alias("c"), F.expr(near)).select("d.account_id")


SEEN = Job(name="seen", group="stateful", summary="s", transform=_seen, stateful=True)
NUMBERED = Job(name="numbered", group="joins", summary="s", transform=_numbered, stateful=True)
# without keys, all rows meet in one task
TOTAL = Job(name="total", group="windows", summary="s", transform=_total, stateful=True, output_mode="update")
FIRST = Job(name="first", group="sql", summary="s", transform=_first, stateful=True)


def at(number: int) -> str:
    return f"2024-03-01T{number // 3600:02}:{number // 60 % 60:02}:{number % 60:02}"


# 60 transactions of 7 customers in 3 batches of 20, one a second; every third is a debit, all above the pairs' limit;
# the last three come twice
ROWS = [
    transaction(
        f"T{n:03}",
        at(n),
        f"C{n % 7}",
        type="Debit" if n % 3 == 0 else "Credit",
        amount=Decimal(f"{20_000 + n}.00"),
    )
    for n in range(60)
]
BATCHES = [ROWS[:20], ROWS[20:40], [*ROWS[40:], *ROWS[57:]]]
LATER = transaction("T900", "2024-03-01T02:00:00", "C1")  # two hours on: the watermark passes all others


MADE = {
    "counts": (daily_counts.JOB, ROCKSDB),
    "counts_snapshots": (daily_counts.JOB, SNAPSHOTS),
    "counts_hdfs": (daily_counts.JOB, HDFS),
    "dedup": (dedup_transactions.JOB, ROCKSDB),
    "pairs": (debit_credit_pairs.JOB, {**ROCKSDB, "spark.sql.streaming.join.stateFormatVersion": "2"}),
    "pairs_hdfs": (debit_credit_pairs.JOB, HDFS),
    "pairs_v3": (debit_credit_pairs.JOB, ROCKSDB),
    "notes": (NOTES, ROCKSDB),
    "two": (TWO, ROCKSDB),
    "enriched": (enriched_transactions.JOB, ROCKSDB),
    "seen": (SEEN, ROCKSDB),
    "numbered": (NUMBERED, {**ROCKSDB, "spark.sql.streaming.join.stateFormatVersion": "2"}),
    "numbered_v3": (NUMBERED, ROCKSDB),
    "total": (TOTAL, ROCKSDB),
    "first": (FIRST, ROCKSDB),
    "stateless": (large_credits.JOB, ROCKSDB),
}


def make(spark: SparkSession, name: str, folder: Path) -> tuple[Path, list[dict[str, Any]]]:
    """The checkpoint of a query that has worked off the batches, and its progress."""
    job, conf = MADE[name]
    with temporary_conf(spark, conf):
        feed = Feed(spark, job, folder)
        if "customers" in job.inputs:
            feed.add([customer(f"C{n}") for n in range(5)], name="customers")
        feed.add(*BATCHES)
        if name == "dedup":
            feed.add([LATER])
        progress = feed.run()
    return feed.checkpoint, progress
