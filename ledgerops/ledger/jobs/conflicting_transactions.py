"""Conflicting transactions: copies that say something else than the first of their transaction_id.

Reads `transactions`, writes unchanged each row whose transaction_id came before with other content: another amount,
account, time, or any other column. An exact copy is no conflict and is not written. Which of two is right cannot be
seen from the rows: the first is only the one that came first; within a batch, the one that most of its copies say, then
the one with the earlier event time.
State: a 64-bit hash for each transaction_id, for as long as the lateness after the event time of its first row.
Watermark: the largest event time seen, less the lateness. A row behind the watermark is dropped unseen, and a copy that
comes later than the lateness after the first counts as a first itself (as in dedup_transactions). A row without an
event time is never late, and compared with those of its own batch and with what is known then.
Restart: the hashes come back with the checkpoint, so a copy that arrives after the restart is still compared.
Upgrade: the lateness may change at a restart and holds for ids seen from then on; a new column of `transactions` makes
every copy of an older row a conflict, for the time of the lateness.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from pyspark.sql import Row
from pyspark.sql import functions as F
from pyspark.sql.streaming.stateful_processor import StatefulProcessor

import ledgerops
from ledgerops.ledger.jobs.job import LATENESS, Job
from ledgerops.ledger.plan.schemas import TRANSACTIONS
from ledgerops.ledger.sources.workers import make_importable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.stateful_processor import (
        ExpiredTimerInfo,
        StatefulProcessorHandle,
        TimerValues,
        ValueState,
    )

JSON = {"timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX"}  # the default would cut microseconds
OUTPUT = "transaction STRING"

_Output = Row("transaction")


class Contents(StatefulProcessor):  # type: ignore[misc]  # pyspark is untyped here
    """One transaction_id: the hash of its first contents, until the watermark has passed its `until`."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        self.handle = handle
        self.first: ValueState = handle.getValueState("first", "content BIGINT")

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: TimerValues) -> Iterator[Row]:  # noqa: N803
        found = self.first.get()
        known = found[0] if found else None
        together = list(rows)
        said = Counter(row.content for row in together)
        # a shuffle has no order, and a batch that is repeated must come to the same rows
        for row in sorted(
            together, key=lambda row: (-said[row.content], row.until is None, row.until, row.transaction)
        ):
            if known is None:
                known = row.content
                self.first.update((known,))
                soon = timerValues.getCurrentWatermarkInMs() + 1
                self.handle.registerTimer(soon if row.until is None else row.until)
            elif row.content != known:
                yield _Output(row.transaction)

    def handleExpiredTimer(
        self,
        key: Any,
        timerValues: TimerValues,  # noqa: N803
        expiredTimerInfo: ExpiredTimerInfo,  # noqa: N803
    ) -> Iterator[Row]:
        self.first.clear()
        return iter(())

    def close(self) -> None:
        """Nothing is held besides the state."""


def transform(transactions: DataFrame, lateness: str = LATENESS) -> DataFrame:
    """Transactions in; those that contradict the first of their transaction_id out, counted as conflicts."""
    make_importable(transactions.sparkSession)
    rows = transactions.withWatermark("event_time", lateness).select(
        "transaction_id",
        "event_time",
        F.unix_millis(F.expr(f"event_time + INTERVAL '{lateness}'")).alias("until"),
        F.to_json(F.struct(*transactions.columns), JSON).alias("transaction"),
    )
    found = (
        rows.withColumn("content", F.xxhash64("transaction"))
        .groupBy("transaction_id")
        .transformWithState(
            statefulProcessor=Contents(), outputStructType=OUTPUT, outputMode="append", timeMode="eventTime"
        )
        .select(F.from_json("transaction", TRANSACTIONS, JSON).alias("transaction"))
        .select("transaction.*")
    )
    return ledgerops.conflicts(found, "transaction_id")


JOB = Job(
    name="conflicting_transactions",
    group="stateful",
    summary="Copies of a transaction that differ from the first.",
    transform=transform,
    stateful=True,
    key="transaction_id",
    lateness=LATENESS,
)
