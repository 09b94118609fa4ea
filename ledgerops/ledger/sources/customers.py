"""Customers and accounts: invented ones, and the bank's own from CSV.

A record is a function of the seed and its id alone, so the same customer has the same name in every table.
"""

import hashlib
import random
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, date, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from ledgerops.ledger.plan import arrow, schemas
from ledgerops.ledger.plan.name_lists import CITIES, FREQUENCIES, LAST, MEN, WOMEN
from ledgerops.ledger.sources import arrow_file
from ledgerops.ledger.sources.arrow_file import Prepared
from ledgerops.ledger.sources.csv_file import Reject, content_hash, keep_rejects, read_rows

DISTRICTS = 77  # as in the bank's data
CUSTOMERS_ARROW, ACCOUNTS_ARROW = arrow.schema_of(schemas.CUSTOMERS), arrow.schema_of(schemas.ACCOUNTS)
_CUSTOMER, _ACCOUNT = ((*schema.names[:-1], "date") for schema in (CUSTOMERS_ARROW, ACCOUNTS_ARROW))
_FIRST_DAY = date(2010, 1, 1)


def customer_record(customer_id: str, seed: int) -> dict[str, str]:
    """An invented customer, as the texts of `_CUSTOMER`; the mail can belong to nobody."""
    draw = random.Random(f"{seed}:{customer_id}")
    woman = draw.random() < 0.5
    first, last = draw.choice(WOMEN if woman else MEN), draw.choice(LAST)
    city, state = draw.choice(CITIES)
    return {
        "customer_id": customer_id,
        "sex": "Female" if woman else "Male",
        "first": first,
        "last": last,
        "email": f"{first}.{last}@example.com".lower(),
        "city": city,
        "state": state,
        "district_id": str(draw.randrange(1, DISTRICTS + 1)),
        "date": (_FIRST_DAY + timedelta(days=draw.randrange(3 * 365))).isoformat(),
    }


def account_record(account_id: str, seed: int) -> dict[str, str]:
    """An invented account, as the texts of `_ACCOUNT`."""
    draw = random.Random(f"{seed}:{account_id}")
    opened = _FIRST_DAY + timedelta(days=draw.randrange(3 * 365))
    return {
        "account_id": account_id,
        "district_id": str(draw.randrange(1, DISTRICTS + 1)),
        "frequency": draw.choice(FREQUENCIES),
        "date": opened.isoformat(),
    }


def parse_customer(fields: Sequence[str]) -> tuple[Any, ...]:
    """The values of `CUSTOMERS_ARROW`; ValueError says what is wrong. Empty texts become None."""
    customer_id, sex, first, last, email, city, state, district, day = fields
    _present("customer_id", customer_id)
    at = datetime.combine(_day(day), datetime.min.time(), UTC)
    texts = [text or None for text in (sex, first, last, email, city, state)]
    return (customer_id, *texts, _district(district), at)


def parse_account(fields: Sequence[str]) -> tuple[Any, ...]:
    """The values of `ACCOUNTS_ARROW`; ValueError says what is wrong."""
    account_id, district, frequency, day = fields
    _present("account_id", account_id)
    return account_id, _district(district), frequency or None, _day(day)


def _present(column: str, text: str) -> None:
    if not text.strip():
        raise ValueError(f"no {column}")


def _day(text: str) -> date:
    try:
        if len(text) != len("2013-01-01"):  # fromisoformat takes other forms too
            raise ValueError
        return date.fromisoformat(text)
    except ValueError:
        raise ValueError(f"date {text!r} is not a date") from None


def _district(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= 9):
        raise ValueError(f"district_id {text!r} is not a whole number")
    return int(text)


def generate_customers(ids: Iterable[str], seed: int = 0) -> pa.Table:
    """Invented customers with these ids, in their order, of the schema CUSTOMERS."""
    rows = [parse_customer([*customer_record(each, seed).values()]) for each in ids]
    return arrow_file.table_of(rows, CUSTOMERS_ARROW)


def generate_accounts(ids: Iterable[str], seed: int = 0) -> pa.Table:
    """Invented accounts with these ids, in their order, of the schema ACCOUNTS."""
    rows = [parse_account([*account_record(each, seed).values()]) for each in ids]
    return arrow_file.table_of(rows, ACCOUNTS_ARROW)


def read_customers(folder: Path, work_dir: Path) -> pa.Table:
    """The good rows of `folder`/customers.csv; the bad ones go to `work_dir`/rejects.jsonl.

    `updated_at` is midnight (UTC) of the column `date`. A repeated id is a bad row. UserError for a missing file or a
    wrong header.
    """
    return _read(folder / "customers.csv", work_dir, CUSTOMERS_ARROW, _CUSTOMER, parse_customer)


def read_accounts(folder: Path, work_dir: Path) -> pa.Table:
    """The good rows of `folder`/accounts.csv; otherwise as `read_customers`."""
    return _read(folder / "accounts.csv", work_dir, ACCOUNTS_ARROW, _ACCOUNT, parse_account)


Parse = Callable[[Sequence[str]], tuple[Any, ...]]


def _read(path: Path, work_dir: Path, schema: pa.Schema, columns: Sequence[str], parse: Parse) -> pa.Table:
    table, _, rejects = _good(path, schema, columns, parse)
    work_dir.mkdir(parents=True, exist_ok=True)
    keep_rejects(work_dir, path.name, content_hash(path), rejects)
    return table


def _good(path: Path, schema: pa.Schema, columns: Sequence[str], parse: Parse) -> arrow_file.Made:
    rejects: list[Reject] = []
    seen: set[str] = set()

    def parse_once(fields: Sequence[str]) -> tuple[Any, ...]:
        row = parse(fields)
        if row[0] in seen:
            raise ValueError(f"repeated {columns[0]}")
        seen.add(row[0])
        return row

    return arrow_file.table_of(list(read_rows(path, columns, parse_once, rejects)), schema), None, rejects


def prepare_customers(path: Path, folder: Path) -> Prepared:
    """As `replay.prepare`, for a customers CSV."""
    make = partial(_good, path, CUSTOMERS_ARROW, _CUSTOMER, parse_customer)
    return arrow_file.keep(folder, path.name, content_hash(path), 1, make)


def prepare_generated(ids: Sequence[str], folder: Path, seed: int = 0) -> Prepared:
    """Invented customers with these ids as an Arrow file in `folder`; a second call with the same ids reuses it."""
    content = hashlib.sha256("\n".join([str(seed), *ids]).encode()).hexdigest()[:16]
    return arrow_file.keep(folder, "customers", content, 1, lambda: (generate_customers(ids, seed), None, []))
