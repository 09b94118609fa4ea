"""What a set of rows amounts to: counts, sums of money, digests, and how much happened in each two hours.

A summary is built batch by batch and takes no memory for a row. What grows is one entry for each two hours of event
time: twelve for a day.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ledgerops.ledger.plan.digest import ID, row_hashes, whole_numbers

if TYPE_CHECKING:
    from ledgerops.ledger.plan.record_stream import Rows

BUCKET_SECONDS = 7_200  # windows that begin and end on whole multiples can be added up from buckets
HASH_MODULUS = 2**64


@dataclass
class Tally:
    """Of some rows: how many, money in hundredths, and the digest of each column (modulo 2^64)."""

    rows: int = 0
    amounts: dict[str, int] = field(default_factory=dict)  # by type
    balances: int = 0
    digests: dict[str, int] = field(default_factory=dict)

    def add(self, rows: pa.RecordBatch, hashes: dict[str, NDArray[np.uint64]], mask: NDArray[np.bool_] | None) -> None:
        """Adds the rows that `mask` selects; None selects all. `hashes` has, for each column, one hash per row."""
        self.rows += rows.num_rows if mask is None else int(np.count_nonzero(mask))
        for name, each in hashes.items():
            mine = each if mask is None else each[mask]
            self.digests[name] = (self.digests.get(name, 0) + int(mine.sum(dtype=np.uint64))) % HASH_MODULUS
        names = rows.schema.names
        if "amount" in names and "type" in names:
            self._add_amounts(rows, mask)
        if "balance" in names:
            balances = whole_numbers(rows.column("balance"))
            self.balances += int((balances if mask is None else balances[mask]).sum())

    def _add_amounts(self, rows: pa.RecordBatch, mask: NDArray[np.bool_] | None) -> None:
        cents = whole_numbers(rows.column("amount"))
        kinds = rows.column("type").dictionary_encode()
        places = kinds.indices.fill_null(-1).to_numpy(zero_copy_only=False)
        for place, kind in enumerate(kinds.dictionary.to_pylist()):
            mine = places == place if mask is None else (places == place) & mask
            if mine.any():
                self.amounts[kind] = self.amounts.get(kind, 0) + int(cents[mine].sum())

    def document(self) -> dict[str, Any]:
        """The tally as JSON: money as decimal text, digests as 16 hexadecimal digits."""
        return {
            "rows": self.rows,
            "amounts": {kind: money(cents) for kind, cents in sorted(self.amounts.items())},
            "balances": money(self.balances),
            "digests": {name: f"{digest:016x}" for name, digest in self.digests.items()},
        }

    @classmethod
    def read(cls, document: dict[str, Any]) -> Tally:
        """The inverse of `document`. Raises KeyError or ValueError if the document has another form."""
        return cls(
            document["rows"],
            {kind: cents(text) for kind, text in document["amounts"].items()},
            cents(document["balances"]),
            {name: int(digest, 16) for name, digest in document["digests"].items()},
        )


@dataclass
class Bucket:
    """What happened in two hours, copies included."""

    rows: int = 0
    cents: int = 0

    def __add__(self, other: Bucket) -> Bucket:
        return Bucket(self.rows + other.rows, self.cents + other.cents)


@dataclass
class Summary:
    """Of rows some of which repeat a transaction."""

    all: Tally = field(default_factory=Tally)
    distinct: Tally = field(default_factory=Tally)  # each transaction once
    late: int = 0  # rows that happened before they were due
    latest_seconds: float = 0.0  # how long before, of the latest
    future: int = 0  # rows that are dated after they were due
    ahead_seconds: float = 0.0  # how long after, of the one that is furthest ahead
    conflicting: int = 0  # rows that repeat a transaction with another amount
    buckets: dict[int, Bucket] = field(default_factory=dict)  # by the beginning, seconds since the epoch

    @classmethod
    def of(cls, parts: Iterable[Rows]) -> Summary:
        """The summary of all these rows."""
        summary = cls()
        for rows in parts:
            summary.add(rows)
        return summary

    def add(self, rows: Rows) -> None:
        """Adds some rows; those without an id have no digests."""
        batch = rows.batch
        if not batch.num_rows:
            return
        hashes = row_hashes(batch) if ID in batch.schema.names else {}
        self.all.add(batch, hashes, None)
        self.distinct.add(batch, hashes, rows.first)
        of_firsts = rows.delays[rows.first]  # a copy is told as one, and not as late
        self.late += int(np.count_nonzero(of_firsts > 0))
        self.latest_seconds = max(self.latest_seconds, float(rows.delays.max()))
        self.future += int(np.count_nonzero(of_firsts < 0))
        self.ahead_seconds = max(self.ahead_seconds, -float(rows.delays.min()))
        self.conflicting += int(np.count_nonzero(rows.conflicting))
        self.add_buckets(batch)

    def add_buckets(self, rows: pa.RecordBatch) -> None:
        """Adds rows to the buckets alone."""
        begins = whole_numbers(rows.column("event_time")) // (BUCKET_SECONDS * 1_000_000) * BUCKET_SECONDS
        amounts = "amount" in rows.schema.names
        cents = whole_numbers(rows.column("amount")) if amounts else np.zeros(len(begins), np.int64)
        known, places, counts = np.unique(begins, return_inverse=True, return_counts=True)
        sums = np.zeros(len(known), np.int64)
        np.add.at(sums, places, cents)
        for begin, found in zip(known.tolist(), map(Bucket, counts.tolist(), sums.tolist()), strict=True):
            self.buckets[begin] = self.buckets.get(begin, Bucket()) + found

    def document(self) -> dict[str, Any]:
        """For JSON; money as text with two decimals."""
        return {
            "rows": self.all.rows,
            "distinct": self.distinct.rows,
            "duplicates": self.all.rows - self.distinct.rows,
            "conflicting": self.conflicting,
            "late": {"rows": self.late, "most_seconds": self.latest_seconds},
            "future": {"rows": self.future, "most_seconds": self.ahead_seconds},
            "all_rows": self.all.document(),
            "distinct_rows": self.distinct.document(),
            "buckets": {
                "seconds": BUCKET_SECONDS,
                "columns": ["begin", "rows", "amount"],
                "values": [[begin, each.rows, money(each.cents)] for begin, each in sorted(self.buckets.items())],
            },
        }

    @classmethod
    def read(cls, document: dict[str, Any]) -> Summary:
        """The summary that `document` wrote; KeyError, TypeError or ValueError when it is something else."""
        values = document["buckets"]["values"]
        found = cls(
            Tally.read(document["all_rows"]),
            Tally.read(document["distinct_rows"]),
            document["late"]["rows"],
            document["late"]["most_seconds"],
            document["future"]["rows"],
            document["future"]["most_seconds"],
            document["conflicting"],
        )
        for begin, rows, amount, *_ in values:  # those of earlier versions have figures without copies, too
            found.buckets[begin] = Bucket(rows, cents(amount))
        return found


def money(cents: int) -> str:
    """Hundredths as text: 12.30"""
    sign = "-" if cents < 0 else ""
    return f"{sign}{abs(cents) // 100}.{abs(cents) % 100:02}"


def cents(text: str) -> int:
    """The inverse of `money`."""
    return int(text.replace(".", "", 1))
