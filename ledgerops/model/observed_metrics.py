"""What queries observe about themselves (Dataset.observe), read from a batch's progress record.

`ledgerops.instrument` observes the most frequent keys, `ledgerops.book` the books of a job that conserves money (what
went in and what came out), and `ledgerops.conflicts` copies of a row that contradict each other.
"""

from collections.abc import Mapping, Sequence
from decimal import Decimal, InvalidOperation
from itertools import islice
from math import isfinite
from typing import Any, NamedTuple

from ledgerops.model.history import History
from ledgerops.model.records import Progress

MAX_OWN_NUMBERS = 50  # of a query: they share its budget of series with everything else
HASH_LENGTH = 12  # hexadecimal digits: enough to distinguish keys
HEXADECIMAL = frozenset("0123456789abcdef")
OBSERVATION = "ledgerops"  # the name under which `instrument` observes
SIDES = ("in", "out")
BOOK = "ledgerops_book"  # an observation is called BOOK_in or BOOK_out, with `_name` where there are several
CONFLICTS = "ledgerops_conflicts"
ROWS, AMOUNT = "rows", "amount"  # columns of a book; the amount is text, for JSON numbers are not exact
COUNT, IDS = "conflicts", "ids"  # columns of an observation of conflicts


class Book(NamedTuple):
    """What one batch took in and put out, over all its books. An amount is None when one of the books has none."""

    rows_in: int
    rows_out: int
    amount_in: Decimal | None
    amount_out: Decimal | None

    @property
    def rows(self) -> int:
        """Rows that entered and did not leave; negative for rows that left without entering."""
        return self.rows_in - self.rows_out

    @property
    def amount(self) -> Decimal:
        """The amount that entered and did not leave; 0 unless it is known for both sides."""
        if self.amount_in is None or self.amount_out is None:
            return Decimal(0)
        return self.amount_in - self.amount_out

    @property
    def balanced(self) -> bool:
        """Whether as many rows left as entered, with the same amount; an unknown amount counts as balanced."""
        return not self.rows and not self.amount


class Conflicts(NamedTuple):
    """The copies in one batch whose content differs from that of the first, and a sample of their ids, hashed."""

    rows: int
    ids: tuple[str, ...]


def book_of(batch: Progress) -> Book | None:
    """The book of a batch; None unless both sides were observed."""
    if not batch.observed:
        return None
    sides = [
        [row for name, row in batch.observed.items() if name.startswith(f"{BOOK}_{side}") and _count(row, ROWS)]
        for side in SIDES
    ]
    if not all(sides):
        return None
    rows = [sum(int(row[ROWS]) for row in side) for side in sides]
    amounts = [_sum(side) for side in sides]
    return Book(rows[0], rows[1], amounts[0], amounts[1])


def plainly_balanced(batch: Progress) -> bool:
    """Whether the batch has two books with equal text: true of nearly every batch, and cheap to check."""
    books = [row for name, row in batch.observed.items() if name.startswith(BOOK)]
    return len(books) == 2 and books[0] == books[1]


def conflicts_of(batch: Progress) -> Conflicts | None:
    """The conflicts of a batch; None where the job does not check for them."""
    found = [row for name, row in batch.observed.items() if name.startswith(CONFLICTS) and _count(row, COUNT)]
    if not found:
        return None
    ids = [
        each["item"]
        for row in found
        if isinstance(sample := row.get(IDS), list)
        for each in sample
        if isinstance(each, Mapping) and isinstance(each.get("item"), str)
    ]
    return Conflicts(sum(int(row[COUNT]) for row in found), tuple(ids))


def reported(history: History, since: float) -> Sequence[Progress]:
    """The batches of all runs that ended at or after an instant, and in any case the newest one of the present run."""
    batches = [each for each in history.batches if each.ended >= since]
    last = history.last
    return batches or ([last] if last is not None and last.run_id == history.run_id else [])


def _count(row: Mapping[str, Any], column: str) -> bool:
    value = row.get(column)
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _sum(side: list[Mapping[str, Any]]) -> Decimal | None:
    total = Decimal(0)
    for row in side:
        try:
            amount = Decimal(row[AMOUNT])
        except (KeyError, TypeError, ValueError, InvalidOperation):
            return None
        if not amount.is_finite():
            return None
        total += amount
    return total


def own_numbers(batch: Progress) -> Mapping[tuple[str, ...], float]:
    """What the application's own observations counted in a batch: (observation, column) -> number.

    The first MAX_OWN_NUMBERS in the order of their names. Text, lists and NaN are left out, and what `instrument`,
    `book` and `conflicts` observe: that has metrics of its own.
    """
    found: dict[tuple[str, ...], float] = {
        (name, str(column)): float(value)
        for name, row in sorted(batch.observed.items())
        if not name.startswith(OBSERVATION)
        for column, value in sorted(row.items())
        if isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value)
    }
    return dict(islice(found.items(), MAX_OWN_NUMBERS))


class HotKey(NamedTuple):
    """The most frequent key of a batch: hashed unless `instrument` was asked for plain keys."""

    key: str
    share: float  # of the rows that have a key, 0 to 1

    @property
    def hashed(self) -> bool:
        """Whether it looks like the first digits of a SHA-256."""
        return len(self.key) == HASH_LENGTH and HEXADECIMAL.issuperset(self.key)


def hottest_key(batch: Progress) -> HotKey | None:
    """The key with the largest share of the rows that a batch observed."""
    found = [
        HotKey(str(top[0].get("item")), top[0]["count"] / rows)
        for name, row in batch.observed.items()
        if name.startswith(OBSERVATION)
        and isinstance(rows := row.get("rows"), int)
        and rows > 0
        and isinstance(top := row.get("hot_keys"), list)
        and top
        and isinstance(top[0], dict)
        and isinstance(top[0].get("count"), int)
    ]
    return max(found, key=lambda hot: hot.share, default=None)
