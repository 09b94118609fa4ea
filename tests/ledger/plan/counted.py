"""The exact counts and sums of a plan's rows, from the generator's functions of the record number: an oracle."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal

import numpy as np

from ledgerops.ledger.plan.generate import Generator
from ledgerops.ledger.plan.partitioning import Ints
from ledgerops.ledger.plan.plan import LoadPlan


@dataclass(frozen=True)
class Counted:
    """What a range of offsets holds, exactly."""

    rows: int
    distinct: int  # transactions; the other rows are copies of one of them within the range or of an earlier one
    late: int  # rows, copies included, whose transaction happened before it was due
    amounts: Mapping[str, Decimal]  # by type, over all rows
    distinct_amounts: Mapping[str, Decimal]  # by type, each transaction once, with the amount that came first
    conflicting: int  # rows with another amount than their transaction's
    future: int  # rows, copies included, whose transaction is dated after it was due


def counted(plan: LoadPlan, ranges: Mapping[int, tuple[int, int]]) -> Counted:
    """The counts and sums of the rows at offsets [start, end) of each partition."""
    generator = Generator(plan, 0.0)
    each = [
        generator.layout.records(partition, np.arange(start, end, dtype=np.int64))
        for partition, (start, end) in ranges.items()
        if end > start
    ]
    records = np.concatenate(each) if each else np.empty(0, np.int64)
    numbers = generator.carried(records)
    once = np.unique(numbers)
    delays = generator.delays(numbers)
    return Counted(
        rows=len(numbers),
        distinct=len(once),
        late=int(np.count_nonzero(delays > 0)),
        amounts=_sums(generator, records, numbers),
        distinct_amounts=_sums(generator, once, once),
        conflicting=int(np.count_nonzero(generator.conflicting(records, numbers))),
        future=int(np.count_nonzero(delays < 0)),
    )


def _sums(generator: Generator, records: Ints, carried: Ints) -> dict[str, Decimal]:
    batch = generator.rows(records, carried)
    sums = {"Credit": Decimal(0), "Debit": Decimal(0)}
    for kind, amount in zip(batch["type"].to_pylist(), batch["amount"].to_pylist(), strict=True):
        sums[kind] += amount
    return sums
