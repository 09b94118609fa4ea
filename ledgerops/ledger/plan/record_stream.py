"""The ledger as one stream of numbered records: made by a plan, or read from the bank's file.

Who sends it and who checks what became of it take it from here, so both mean the same rows. Record n has a place and
an instant at which it is due; rows of any range can be had at any time.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ledgerops.errors import UserError
from ledgerops.ledger.plan.generate import Generator
from ledgerops.ledger.plan.partitioning import Ints
from ledgerops.ledger.plan.plan import LoadPlan
from ledgerops.ledger.plan.plan_windows import Spans
from ledgerops.ledger.plan.poison import kinds_after
from ledgerops.ledger.plan.schemas import SIDES
from ledgerops.ledger.sources import replay
from ledgerops.ledger.sources.ads import ad_events
from ledgerops.ledger.sources.csv_file import content_hash

Table = Literal["transactions", "debits", "credits", "ad_events"]
#: Records that are made at a time: 10 ms of work, so that a sender that makes them between two sends is not late.
CHUNK_RECORDS = 8_192


@dataclass(frozen=True)
class Rows:
    """Some records of a stream, in their order; arrays have one entry a row."""

    numbers: Ints  # of the records
    batch: pa.RecordBatch
    partitions: Ints
    first: NDArray[np.bool_]  # whether no earlier record carries the same transaction
    delays: NDArray[np.float64]  # seconds by which it happened before it was due; below 0: is dated after that
    conflicting: NDArray[np.bool_]  # whether it repeats a transaction with another amount

    def where(self, mask: NDArray[np.bool_]) -> Rows:
        """Those rows for which `mask` holds."""
        arrays = {name: array[mask] for name, array in vars(self).items() if name != "batch"}
        return Rows(batch=self.batch.filter(pa.array(mask)), **arrays)


class PlanStream(Generator):
    """What a plan gives whose clock stood at zero at `origin` (seconds since the epoch)."""

    def __init__(self, plan: LoadPlan, origin: float, table: Table = "transactions") -> None:
        super().__init__(plan, origin)
        self.table, self.partitions = table, self.layout.count
        self._poison = Spans(plan, plan.poison, [(each, each.poison) for each in plan.changes])

    def poison(self, records: Ints, kinds: Sequence[str]) -> NDArray[np.intp]:
        """Index in REASONS of the poison after each record, -1 for none; shape of `records`. Only `kinds` are used."""
        found = np.empty(len(records), np.intp)
        for i, mine in self._poison.at(records):
            found[mine] = kinds_after(self._poison.values[i], self.plan.seed, records[mine], kinds)
        return found

    def rows(self, start: int, end: int, step: int = 1) -> Rows:
        """Rows of records `start` to `end` (excluded), in steps of `step`, without the rows of other tables."""
        numbers = np.arange(start, end, step, dtype=np.int64)
        carried = self.carried(numbers)
        partitions, _ = self.layout.places(numbers)
        # a record carries its own transaction or that of an earlier record, which is in the stream, too
        found = Rows(
            numbers,
            self.made(numbers, carried),
            partitions,
            carried == numbers,
            self._delays(numbers, carried),
            self.conflicting(numbers, carried),
        )
        return _of_table(found, self.table)

    def _delays(self, numbers: Ints, carried: Ints) -> NDArray[np.float64]:
        """Of a copy with what passes between its original and itself: it bears the time of that."""
        delays, copies = self.delays(carried), numbers != carried
        if copies.any():
            delays[copies] += self.due_time(numbers[copies]) - self.due_time(carried[copies])
        return delays


class ReplayStream:
    """The good rows of a transactions CSV in the order of the file, at `rate` rows a second; held in memory."""

    def __init__(self, file: Path, rate: float, table: Table = "transactions") -> None:
        rows, partitions, rejects = replay.good_rows(file)
        if rows.num_rows == 0:
            raise UserError(f"no usable row in {file}: {len(rejects)} rejected")
        self.file, self.rate, self.table, self.partitions = file, rate, table, replay.PARTITIONS
        self.digest, self.rejected = content_hash(file), len(rejects)
        [self._batch] = rows.to_batches()
        self._partition = np.array(partitions, np.int64)
        self.total: int | None = rows.num_rows
        self._first = np.zeros(rows.num_rows, np.bool_)
        ids = self._batch.column("transaction_id").to_numpy(zero_copy_only=False).astype(str)
        self._first[np.unique(ids, return_index=True)[1]] = True

    def poison(self, records: Ints, kinds: Sequence[str]) -> NDArray[np.intp]:
        """-1 for each record: a replay sends no poison."""
        return np.full(len(records), -1, np.intp)

    def due(self, seconds: float) -> int:
        """Number of records due within `seconds` of the start, at `rate` rows a second."""
        return math.floor(seconds * self.rate + 1e-6)

    def due_time(self, records: Ints) -> NDArray[np.float64]:
        """Seconds from the start at which each record is due; shape of `records`. The first is due after 1 / `rate`."""
        return (records + 1) / self.rate

    def rows(self, start: int, end: int, step: int = 1) -> Rows:
        """Rows `start` to `end` (excluded) of the file, in steps of `step`; all on time, as a file has no delays."""
        numbers = np.arange(start, min(end, len(self._first)), step, dtype=np.int64)
        part = slice(start, end, step)
        # delays are unknown: the file has the time of a transaction, and not of its arrival
        found = Rows(
            numbers,
            self._batch.slice(start, len(numbers)) if step == 1 else self._batch.take(pa.array(numbers)),
            self._partition[part],
            self._first[part],
            np.zeros(len(numbers)),
            np.zeros(len(numbers), np.bool_),
        )
        return _of_table(found, self.table)


Stream = PlanStream | ReplayStream


def chunks(stream: Stream, end: int | None, start: int = 0, step: int = 1) -> Iterator[tuple[int, Rows]]:
    """Every `step`-th of the records [start, end), or to the stream's own end, some thousand at a time.

    With each some thousand comes the number of the first record behind them.
    """
    last = min((each for each in (end, stream.total) if each is not None), default=None)
    while last is None or start < last:
        behind = start + CHUNK_RECORDS * step
        upto = behind if last is None else min(behind, last)
        yield upto, stream.rows(start, upto, step)
        start = behind


def _of_table(rows: Rows, table: Table) -> Rows:
    if table in SIDES:
        kept = pc.equal(rows.batch.column("type"), SIDES[table])
        return rows.where(kept.to_numpy(zero_copy_only=False))
    if table == "ad_events":
        return replace(rows, batch=ad_events(rows.batch))
    return rows
