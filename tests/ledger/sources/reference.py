"""Customers and accounts as the bank's files hold them."""

import csv
from collections.abc import Iterable, Sequence
from pathlib import Path

from ledgerops.ledger.sources.customers import account_record, customer_record

CUSTOMER_COLUMNS = (
    *("customer_id", "sex", "fulldate", "day", "month", "year", "age", "social", "first", "middle", "last", "phone"),
    *("email", "address_1", "address_2", "city", "state", "zipcode", "district_id", "date"),
)
ACCOUNT_COLUMNS = ("account_id", "district_id", "frequency", "parseddate", "year", "month", "day", "date")


def write_reference(folder: Path, customers: Iterable[str], accounts: Iterable[str], seed: int = 0) -> None:
    """Writes customers.csv and accounts.csv with invented records for these ids, in the columns of the bank's files.

    Columns that nothing reads are empty.
    """
    folder.mkdir(parents=True, exist_ok=True)
    _write(folder / "customers.csv", CUSTOMER_COLUMNS, (customer_record(each, seed) for each in customers))
    _write(folder / "accounts.csv", ACCOUNT_COLUMNS, (account_record(each, seed) for each in accounts))


def _write(path: Path, columns: Sequence[str], records: Iterable[dict[str, str]]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, columns, lineterminator="\n")
        writer.writeheader()
        writer.writerows(records)
