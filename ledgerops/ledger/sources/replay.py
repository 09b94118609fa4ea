"""The transactions of a CSV, in five partitions."""

import re
import zlib
from collections.abc import Sequence
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa

from ledgerops.ledger.plan import arrow
from ledgerops.ledger.sources import arrow_file
from ledgerops.ledger.sources.arrow_file import Prepared
from ledgerops.ledger.sources.csv_file import Reject, content_hash, read_rows

PARTITIONS = 5
COLUMNS = (
    *("trans_id", "account_id", "type", "operation", "amount", "balance"),
    *("k_symbol", "fulldatewithtime", "customer_id"),
)
_AMOUNT = re.compile(r"-?[0-9]{1,16}(\.[0-9]{1,2})?")  # what DECIMAL(18,2) holds without rounding
_INSTANT = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}:[0-9]{2}.*")


def partition_of(account_id: str) -> int:
    """The source partition of an account: the same in every run and process."""
    return zlib.crc32(account_id.encode()) % PARTITIONS


def parse_transaction(fields: Sequence[str]) -> tuple[Any, ...]:
    """The values of a row in the order of arrow.TRANSACTIONS, from the texts of `COLUMNS`; ValueError says why not."""
    trans_id, account_id, kind, operation, amount, balance, _, at, customer_id = fields
    for column, value in (("trans_id", trans_id), ("account_id", account_id), ("customer_id", customer_id)):
        if not value.strip():
            raise ValueError(f"no {column}")
    if kind not in ("Credit", "Debit"):
        raise ValueError(f"type {kind!r} is not Credit or Debit")
    return (
        trans_id,
        account_id,
        customer_id,
        parse_instant("fulldatewithtime", at),
        kind,
        operation or None,
        _money("amount", amount),
        _money("balance", balance),
    )


def parse_instant(column: str, text: str) -> datetime:
    """An ISO 8601 date and time; UTC unless it says otherwise."""
    try:
        if not _INSTANT.fullmatch(text):
            raise ValueError
        at = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(f"{column} {text!r} is not a date and time") from None
    return at if at.tzinfo else at.replace(tzinfo=UTC)


def _money(column: str, text: str) -> Decimal:
    if not _AMOUNT.fullmatch(text):
        raise ValueError(f"{column} {text!r} is not an amount with at most two decimals")
    return Decimal(text)


def prepare(csv: Path, folder: Path) -> Prepared:
    """Check a transactions CSV and keep its good rows as an Arrow file in `folder`, its bad ones in rejects.jsonl.

    A second call on the same content reuses the file. Executors read it by path: on a cluster `folder` must be on
    shared storage. UserError for a missing file, a wrong header or a file without one good row.
    """

    return arrow_file.keep(folder, csv.name, content_hash(csv), PARTITIONS, lambda: good_rows(csv))


def good_rows(csv: Path) -> tuple[pa.Table, list[int], list[Reject]]:
    """The good rows in the order of the file, the partition of each, and the bad ones. Raises UserError."""
    rejects: list[Reject] = []
    rows = list(read_rows(csv, COLUMNS, parse_transaction, rejects))
    return arrow_file.table_of(rows, arrow.TRANSACTIONS), [partition_of(row[1]) for row in rows], rejects
