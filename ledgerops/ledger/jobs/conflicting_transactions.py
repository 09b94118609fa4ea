"""Conflicting transactions: copies that say something else than the first of their transaction_id.

Reads `transactions`, writes unchanged each row whose transaction_id came before with other content: another amount,
account, time, or any other column. An exact copy is no conflict and is not written. Which of two is right cannot be
seen from the rows: the first is only the one that came first; within a batch, the one that most of its copies say, then
the one with the earlier event time.
State: 64-bit hashes of each transaction_id and of what it said first, for as long as the lateness after the event time
of its first row. Ids share STATE_KEYS keys of state, since Spark's calls cost as much for a key with one row as for one
with hundreds. Two ids with the same hash would be one: with a million ids in state, one chance in 37 million.
Watermark: the largest event time seen, less the lateness. A row behind the watermark is dropped unseen, and a copy that
comes later than the lateness after the first counts as a first itself (as in dedup_transactions). A row without an
event time is never late, and compared with those of its own batch and with what is known then.
Restart: the hashes come back with the checkpoint, so a copy that arrives after the restart is still compared.
Upgrade: the lateness may change at a restart and holds for ids seen from then on; STATE_KEYS may not. A new column of
`transactions` makes every copy of an older row a conflict, for the time of the lateness.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterator
from typing import Any

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F
from pyspark.sql.streaming.stateful_processor import (
    ExpiredTimerInfo,
    StatefulProcessor,
    StatefulProcessorHandle,
    TimerValues,
    ValueState,
)

import ledgerops
from ledgerops.ledger.jobs.job import LATENESS, Job
from ledgerops.ledger.jobs.json_state import JSON, STATE_KEYS
from ledgerops.ledger.plan.schemas import TRANSACTIONS

OUTPUT = "transaction STRING"

_Output = Row("transaction")
Copy = tuple[int, int | None, str]  # content, until and transaction of a row


class Contents(StatefulProcessor):  # type: ignore[misc]  # pyspark is untyped here
    """One group of ids: each one's first content, until the watermark has passed its `until`.

    All are in one value, three numbers an id. There is a timer at the earliest `until`, and perhaps others before it.
    """

    def init(self, handle: StatefulProcessorHandle) -> None:
        self.handle = handle
        self.first: ValueState = handle.getValueState("first", "ids BINARY")

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: TimerValues) -> Iterator[Row]:  # noqa: N803
        copies: dict[int, list[Copy]] = {}
        for _, number, content, until, transaction, _ in rows:
            copies.setdefault(number, []).append((content, until, transaction))
        numbers = self._known()
        known = dict(zip(numbers[::3], numbers[1::3], strict=True))
        earliest = min(numbers[2::3], default=None)
        new = array("q")
        for number, together in copies.items():
            for content, until, transaction in _in_order(together):
                if number not in known:
                    known[number] = content
                    soon = timerValues.getCurrentWatermarkInMs() + 1
                    new.extend((number, content, soon if until is None else until))
                elif content != known[number]:
                    yield _Output(transaction)
        if new:
            self.first.update(((numbers + new).tobytes(),))
            if earliest is None or min(new[2::3]) < earliest:
                self.handle.registerTimer(min(new[2::3]))

    def handleExpiredTimer(
        self,
        key: Any,
        timerValues: TimerValues,  # noqa: N803
        expiredTimerInfo: ExpiredTimerInfo,  # noqa: N803
    ) -> Iterator[Row]:
        numbers, staying = self._known(), array("q")
        for place in range(0, len(numbers), 3):
            if numbers[place + 2] >= timerValues.getCurrentWatermarkInMs():
                staying.extend(numbers[place : place + 3])
        if not staying:
            self.first.clear()
        elif len(staying) < len(numbers):
            self.first.update((staying.tobytes(),))
        if staying:
            self.handle.registerTimer(min(staying[2::3]))
        return iter(())

    def _known(self) -> array[int]:
        found = self.first.get()
        return array("q", bytes(found[0]) if found else b"")


def _in_order(copies: list[Copy]) -> list[Copy]:
    """The same for the same rows: a shuffle has no order, and a batch that is repeated must come to the same output."""
    said = Counter(content for content, *_ in copies)
    return sorted(copies, key=lambda copy: (-said[copy[0]], copy[1] is None, copy[1] or 0, copy[2]))


def transform(transactions: DataFrame, lateness: str = LATENESS) -> DataFrame:
    """Transactions in; those that contradict the first of their transaction_id out, counted as conflicts."""
    rows = transactions.withWatermark("event_time", lateness).select(
        F.xxhash64("transaction_id").alias("id"),
        "event_time",
        F.unix_millis(F.expr(f"event_time + INTERVAL '{lateness}'")).alias("until"),
        F.to_json(F.struct(*transactions.columns), JSON).alias("transaction"),
    )
    found = (
        rows.select(
            F.pmod("id", F.lit(STATE_KEYS)).cast("int").alias("group"),
            "id",
            F.xxhash64("transaction").alias("content"),
            "until",
            "transaction",
            "event_time",
        )
        .groupBy("group")
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
