"""Customers and accounts as the bank's files hold them."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from pathlib import Path

from ledgerops.ledger.sources.customers import CUSTOMER_COLUMNS, account_record, customer_record


def write_reference(folder: Path, customers: Iterable[str], accounts: Iterable[str], seed: int = 0) -> None:
    """Writes customers.csv and accounts.csv with invented records for these ids, in the columns of the bank's files."""
    folder.mkdir(parents=True, exist_ok=True)
    _write(folder / "customers.csv", CUSTOMER_COLUMNS, (customer_record(each, seed) for each in customers))
    columns = tuple(account_record("", seed))
    _write(folder / "accounts.csv", columns, (account_record(each, seed) for each in accounts))


def _write(path: Path, columns: Sequence[str], records: Iterable[dict[str, str]]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, columns, lineterminator="\n")
        writer.writeheader()
        writer.writerows(records)
