"""The embedded ledger: every transaction is a pure function of the plan and of its number in the stream.

A record has a place (partition and offset, see `layout`) and carries a transaction. A duplicate is a record that
carries the transaction of an earlier record. Nothing is drawn in sequence, so any range of offsets can be made at any
time, in any split, and gives the same rows. `balance` is a plausible figure, not the account's running sum.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from statistics import NormalDist

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ledgerops.ledger import arrow
from ledgerops.ledger.hashing import HALF, hashes, high_half, low_half, unit
from ledgerops.ledger.layout import Ints, Layout
from ledgerops.ledger.plan import Plan
from ledgerops.ledger.planparts import Amounts, Keys

CHUNK = 16_384  # rows a record batch: its columns fit a core's second-level cache

_ACCOUNT, _BODY, _LATE, _DUPLICATE, _SHUFFLE, _OWNER = range(6)
_MOST_BALANCE = 15_000_000  # cents; nine tenths of the real balances are below

# type, operation, and how many of 256 transactions have them: the shares of the real ledger
_KINDS = (
    ("Debit", "Withdrawal in Cash", 103),
    ("Credit", "Credit in Cash", 51),
    ("Credit", None, 49),
    ("Debit", "Remittance to Another Bank", 33),
    ("Credit", "Collection from Another Bank", 19),
    ("Debit", "Credit Card Withdrawal", 1),
)
_KIND_OF = np.repeat(np.arange(len(_KINDS)), [weight for _, _, weight in _KINDS])
_TYPES = pa.array([kind for kind, _, _ in _KINDS])
_OPERATIONS = pa.array([operation for _, operation, _ in _KINDS])
_IS_CREDIT = np.array([kind == "Credit" for kind, _, _ in _KINDS])


@dataclass(frozen=True)
class Manifest:
    """What a range of offsets holds, exactly: what a verifier compares a job's output with."""

    rows: int
    distinct: int  # transactions; the other rows are copies of one of them within the range or of an earlier one
    late: int  # rows, copies included, whose transaction happened before it was due
    amounts: Mapping[str, Decimal]  # by type, over all rows
    distinct_amounts: Mapping[str, Decimal]  # by type, each transaction once

    @property
    def duplicates(self) -> int:
        return self.rows - self.distinct


class Generator:
    """The transactions of a plan whose clock stood at zero at `origin` (seconds since the epoch)."""

    def __init__(self, plan: Plan, origin: float) -> None:
        self.plan = plan
        self.layout = Layout(plan.partitions)
        self._first_micros = round((origin if plan.start is None else plan.start) * 1e6)
        self._schedule = plan.schedule

    def due(self, seconds: float) -> int:
        """How many records are due so many seconds after the origin."""
        return self._schedule.due(seconds)

    def batches(self, partition: int, start: int, end: int) -> Iterator[pa.RecordBatch]:
        """The rows of offsets [start, end) of a partition, in order."""
        for low in range(start, end, CHUNK):
            offsets = np.arange(low, min(low + CHUNK, end), dtype=np.int64)
            yield self.transactions(self.carried(self.layout.records(partition, offsets)))

    def carried(self, records: Ints) -> Ints:
        """The number of the transaction that each record carries: its own, or that of the record it repeats."""
        share, within = self.plan.duplicates.share, self.plan.duplicates.within
        if not share:
            return records
        carried, open_ = records.copy(), np.arange(len(records))
        while len(open_):
            bits = hashes(self.plan.seed, _DUPLICATE, carried[open_])
            repeats = (low_half(bits) < share) & (carried[open_] > 0)
            open_, bits = open_[repeats], bits[repeats]
            record = carried[open_]
            due = self._schedule.due_time(record)
            earlier = self._schedule.cumulative(due - high_half(bits) * np.minimum(due, within)).astype(np.int64)
            carried[open_] = np.clip(earlier, 0, record - 1)
        return carried

    def delays(self, numbers: Ints) -> NDArray[np.float64]:
        """By how many seconds each transaction happened before its record was due; 0 for those in time."""
        late = self.plan.late
        out = np.zeros(len(numbers))
        if not late.share:
            return out
        bits = hashes(self.plan.seed, _LATE, numbers)
        mine = low_half(bits) < late.share
        position = high_half(bits[mine])
        if late.delay == "exponential":
            out[mine] = -late.high * np.log1p(-position)
        else:
            out[mine] = late.low + (late.high - late.low) * position
        return out

    def transactions(self, numbers: Ints) -> pa.RecordBatch:
        """The transactions with these numbers."""
        keys = _key_table(self.plan.keys, self.plan.seed)
        account = keys.draw(hashes(self.plan.seed, _ACCOUNT, numbers))
        kind, cents, balance = self._body(numbers)
        micros = np.rint((self._schedule.due_time(numbers) - self.delays(numbers)) * 1e6).astype(np.int64)
        return pa.RecordBatch.from_arrays(
            [
                arrow.strings(arrow.identifiers("T", numbers, 10)),
                arrow.strings(keys.account_ids[account]),
                arrow.strings(keys.customer_ids[account]),
                arrow.timestamps(micros + self._first_micros),
                _TYPES.take(pa.array(kind)),
                _OPERATIONS.take(pa.array(kind)),
                arrow.money(cents),
                arrow.money(balance),
            ],
            schema=arrow.TRANSACTIONS,
        )

    def _body(self, numbers: Ints) -> tuple[Ints, Ints, Ints]:
        """Kind, amount and balance (cents) of each transaction."""
        bits = hashes(self.plan.seed, _BODY, numbers)
        kind = _KIND_OF[(bits & np.uint64(0xFF)).astype(np.intp)]
        cents = _amount_table(self.plan.amounts)[((bits >> np.uint64(8)) & np.uint64(0xFFFF)).astype(np.intp)]
        balance = ((bits >> np.uint64(32)).astype(np.float64) * (_MOST_BALANCE / HALF)).astype(np.int64)
        return kind, cents, balance


def manifest(plan: Plan, ranges: Mapping[int, tuple[int, int]]) -> Manifest:
    """The exact counts and sums of the rows at offsets [start, end) of each partition."""
    generator = Generator(plan, 0.0)
    carried = [
        generator.carried(generator.layout.records(partition, np.arange(start, end, dtype=np.int64)))
        for partition, (start, end) in ranges.items()
        if end > start
    ]
    numbers = np.concatenate(carried) if carried else np.empty(0, np.int64)
    once = np.unique(numbers)
    return Manifest(
        rows=len(numbers),
        distinct=len(once),
        late=int(np.count_nonzero(generator.delays(numbers))),
        amounts=_sums(generator, numbers),
        distinct_amounts=_sums(generator, once),
    )


def _sums(generator: Generator, numbers: Ints) -> dict[str, Decimal]:
    kind, cents, _ = generator._body(numbers)
    credit = _IS_CREDIT[kind]
    return {
        "Credit": Decimal(int(cents[credit].sum())).scaleb(-2),
        "Debit": Decimal(int(cents[~credit].sum())).scaleb(-2),
    }


def customer_ids(keys: Keys) -> list[str]:
    """Every customer that a transaction of the plan may name."""
    return [f"C{i:08}" for i in range(1, keys.customers + 1)]


def account_ids(keys: Keys) -> list[str]:
    """Every account that a transaction of the plan may name."""
    return [f"A{i:08}" for i in range(1, keys.accounts + 1)]


class _KeyTable:
    def __init__(self, keys: Keys, seed: int) -> None:
        index = np.arange(keys.accounts, dtype=np.int64)
        # the busiest accounts must not be the first ones: an order by id would hide or fake a skew
        shuffled = np.argsort(hashes(seed, _SHUFFLE, index), kind="stable")
        extra = (unit(hashes(seed, _OWNER, index)) * keys.customers).astype(np.int64)
        owner = np.where(index < keys.customers, index, extra)
        self.account_ids = arrow.identifiers("A", shuffled + 1, 8)
        self.customer_ids = arrow.identifiers("C", owner[shuffled] + 1, 8)
        self._cumulative = _cumulative_shares(keys)

    def draw(self, bits: NDArray[np.uint64]) -> NDArray[np.intp]:
        """The rank of the account that each hash falls on."""
        if self._cumulative is None:
            return (unit(bits) * len(self.account_ids)).astype(np.intp)
        return np.searchsorted(self._cumulative, unit(bits), side="right")


def _cumulative_shares(keys: Keys) -> NDArray[np.float64] | None:
    """The exact distribution over the ranks, without the last 1; None for uniform.

    Not the usual shortcut of hashing a Zipf draw from a far larger key space: over some thousand keys its hottest key
    has a third of the share that it should have.
    """
    if keys.distribution == "uniform" or keys.accounts == 1:
        return None
    if keys.distribution == "whale":
        shares = np.full(keys.accounts, (1 - keys.share) / (keys.accounts - 1))
        shares[0] = keys.share
    else:
        shares = np.arange(1, keys.accounts + 1, dtype=np.float64) ** -keys.exponent
    total = np.cumsum(shares)
    cumulative: NDArray[np.float64] = total[:-1] / total[-1]
    return cumulative


@lru_cache(maxsize=8)
def _key_table(keys: Keys, seed: int) -> _KeyTable:
    return _KeyTable(keys, seed)


@lru_cache(maxsize=8)
def _amount_table(amounts: Amounts) -> Ints:
    """Cents at 65,536 even steps of the distribution."""
    normal = NormalDist()
    steps = [normal.inv_cdf((i + 0.5) / 65_536) for i in range(65_536)]
    values = [min(amounts.median * math.exp(amounts.sigma * step), amounts.most) for step in steps]
    cents: Ints = np.maximum(np.rint(np.array(values) * 100), 1).astype(np.int64)
    return cents
