"""The embedded ledger: every transaction is a pure function of the plan and of its number in the stream.

A record has a place (partition and offset, see `partitioning`) and carries a transaction. A duplicate is a record that
carries the transaction of an earlier record. Nothing is drawn in sequence, so any range of offsets can be made at any
time, in any split, and gives the same rows. `balance` is a plausible figure, not the account's running sum.
"""

import math
from collections.abc import Iterator
from functools import lru_cache
from statistics import NormalDist

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ledgerops.ledger.plan import arrow
from ledgerops.ledger.plan.disorder import Disorder
from ledgerops.ledger.plan.key_distribution import key_table
from ledgerops.ledger.plan.partitioning import Ints, Places
from ledgerops.ledger.plan.plan import LoadPlan
from ledgerops.ledger.plan.plan_windows import Spans
from ledgerops.ledger.plan.sections import Amounts, Keys
from ledgerops.ledger.plan.seeded_hash import HALF_RANGE, hashes

CHUNK_ROWS = 16_384  # rows a record batch: its columns fit a core's second-level cache

_ACCOUNT, _BODY = 0, 1  # purposes of hashes; the others are those of disorder, key_distribution and poison
_MAX_BALANCE_CENTS = 15_000_000  # nine tenths of the real balances are below

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
_TYPES = arrow.texts([kind for kind, _, _ in _KINDS])
_OPERATIONS = arrow.texts([operation for _, operation, _ in _KINDS])


class Generator:
    """The transactions of a plan whose clock stood at zero at `origin` (seconds since the epoch)."""

    def __init__(self, plan: LoadPlan, origin: float) -> None:
        self.plan, self.origin = plan, origin
        self._first_micros = round((origin if plan.start is None else plan.start) * 1e6)
        self._schedule = plan.schedule
        layouts = Spans(plan, plan.partitions, [(each, each.partitions) for each in plan.changes])
        self.layout = Places(layouts.values, layouts.starts)
        self._keys = Spans(plan, plan.keys, [(each, each.keys) for each in plan.changes])
        self._disorder = Disorder(plan)
        self.carried, self.delays = self._disorder.carried, self._disorder.delays
        self.conflicting = self._disorder.conflicting

    @property
    def total(self) -> int | None:
        """How many records there ever are; None: they never end."""
        return self._schedule.total

    def due(self, seconds: float) -> int:
        """How many records are due so many seconds after the origin."""
        return self._schedule.due(seconds)

    def due_time(self, records: Ints) -> NDArray[np.float64]:
        """Seconds after the origin at which each record is due; shape of `records`."""
        return self._schedule.due_time(records)

    def heads(self, count: int) -> list[int]:
        """How many of the first `count` records each partition has, of the partitions that there are by then."""
        return self.layout.heads(count)[: self.layout.known(count)]

    def batches(self, partition: int, start: int, end: int) -> Iterator[pa.RecordBatch]:
        """The rows of offsets [start, end) of a partition, in order."""
        for low in range(start, end, CHUNK_ROWS):
            records = self.layout.records(partition, np.arange(low, min(low + CHUNK_ROWS, end), dtype=np.int64))
            yield self.made(records, self.carried(records))

    def made(self, records: Ints, carried: Ints) -> pa.RecordBatch:
        """The rows of these records: the transactions they carry, conflicting copies with another amount."""
        kind, cents, balance = self._figures(carried)
        cents = self._cents(records, carried, cents)
        due = self._schedule.due_time(carried)
        micros = np.rint((due - self.delays(carried)) * 1e6).astype(np.int64)
        accounts, customers = self._drawn(carried, due)
        kinds = arrow.integers(kind)
        return pa.RecordBatch.from_arrays(
            [
                arrow.strings(arrow.identifiers("T", carried, 10)),
                arrow.strings(accounts),
                arrow.strings(customers),
                arrow.timestamps(micros + self._first_micros),
                _TYPES.take(kinds),
                _OPERATIONS.take(kinds),
                arrow.money(cents),
                arrow.money(balance),
            ],
            schema=arrow.TRANSACTIONS,
        )

    def _figures(self, numbers: Ints) -> tuple[Ints, Ints, Ints]:
        """Kind, amount and balance (cents) of each transaction."""
        bits = hashes(self.plan.seed, _BODY, numbers)
        kind = _KIND_OF[(bits & np.uint64(0xFF)).astype(np.intp)]
        cents = _amount_table(self.plan.amounts)[((bits >> np.uint64(8)) & np.uint64(0xFFFF)).astype(np.intp)]
        balance = ((bits >> np.uint64(32)).astype(np.float64) * (_MAX_BALANCE_CENTS / HALF_RANGE)).astype(np.int64)
        return kind, cents, balance

    def _cents(self, records: Ints, carried: Ints, cents: Ints) -> Ints:
        """The amounts in these records, given those in the first records of their transactions."""
        other = self.conflicting(records, carried)
        if not other.any():
            return cents
        bits = self._disorder.conflict_bits(records[other])
        drawn = _amount_table(self.plan.amounts)[(bits & np.uint64(0xFFFF)).astype(np.intp)]
        amounts = cents.copy()
        amounts[other] = np.where(drawn == cents[other], drawn + 1, drawn)
        return amounts

    def _drawn(self, numbers: Ints, due: NDArray[np.float64]) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
        """Account and customer ids."""
        bits = hashes(self.plan.seed, _ACCOUNT, numbers)
        accounts, customers = np.empty((len(numbers), 9), np.uint8), np.empty((len(numbers), 9), np.uint8)
        for i, mine in self._keys.at(numbers):
            table = key_table(self._keys.values[i], self.plan.seed)
            rank = table.draw(bits[mine], due[mine] - self._keys.since[i])
            accounts[mine], customers[mine] = table.account_ids[rank], table.customer_ids[rank]
        return accounts, customers


def customer_ids(keys: Keys) -> list[str]:
    """Every customer that a transaction of the plan may name."""
    return [f"C{i:08}" for i in range(1, keys.customers + 1)]


def account_ids(keys: Keys) -> list[str]:
    """Every account that a transaction of the plan may name."""
    return [f"A{i:08}" for i in range(1, keys.accounts + 1)]


@lru_cache(maxsize=8)
def _amount_table(amounts: Amounts) -> Ints:
    """Cents at 65,536 even steps of the distribution."""
    normal = NormalDist()
    steps = [normal.inv_cdf((i + 0.5) / 65_536) for i in range(65_536)]
    values = [min(amounts.median * math.exp(amounts.sigma * step), amounts.most) for step in steps]
    cents: Ints = np.maximum(np.rint(np.array(values) * 100), 1).astype(np.int64)
    return cents
