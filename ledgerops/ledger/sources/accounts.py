"""The accounts of a run as a database table: an SQLite file that jobs look accounts up in."""

import sqlite3
from contextlib import closing
from pathlib import Path
from urllib.parse import quote

import pyarrow as pa

from ledgerops.common.files import replacing

CREATE = "CREATE TABLE accounts (account_id TEXT PRIMARY KEY, district_id INTEGER, frequency TEXT, opened_on TEXT)"


def write_accounts(accounts: pa.Table, path: Path) -> None:
    """Writes `accounts` (columns of schemas.ACCOUNTS) as table `accounts` of a new SQLite file, whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    texts = accounts.set_column(3, "opened_on", accounts.column("opened_on").cast(pa.string()))
    rows = zip(*(column.to_pylist() for column in texts.columns), strict=True)
    with replacing(path) as part, closing(sqlite3.connect(part)) as database:
        database.execute(CREATE)
        database.executemany("INSERT INTO accounts VALUES (?, ?, ?, ?)", rows)
        database.commit()


def url_of(path: Path) -> str:
    """The URL by which jobs look accounts up in this file."""
    return f"sqlite:///{quote(str(path.resolve()))}"
