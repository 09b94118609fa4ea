"""The accounts of a run as a database table: an SQLite file that jobs look accounts up in."""

import sqlite3
from contextlib import closing
from pathlib import Path
from urllib.parse import quote

import pyarrow as pa

from ledgerops.common.files import replacing
from ledgerops.ledger.plan.generate import account_ids
from ledgerops.ledger.plan.plan import LoadPlan
from ledgerops.ledger.sources.customers import generate_accounts, read_accounts

CREATE = "CREATE TABLE accounts (account_id TEXT PRIMARY KEY, district_id INTEGER, frequency TEXT, opened_on TEXT)"


def accounts_of_csv(folder: Path, work_dir: Path) -> Path:
    """The good rows of `folder`/accounts.csv as an SQLite file in `work_dir`; the bad ones go to its rejects.jsonl.

    UserError for a missing file or a wrong header.
    """
    return _write(work_dir / "accounts.sqlite", read_accounts(folder, work_dir))


def accounts_of_plan(plan: LoadPlan, work_dir: Path) -> Path:
    """Invented accounts, one for each that a transaction of the plan may name, as an SQLite file in `work_dir`."""
    return _write(work_dir / "accounts.sqlite", generate_accounts(account_ids(plan.all_keys), plan.seed))


def _write(path: Path, accounts: pa.Table) -> Path:
    """Writes `accounts` (columns of schemas.ACCOUNTS) as table `accounts` of a new SQLite file, whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    texts = accounts.set_column(3, "opened_on", accounts.column("opened_on").cast(pa.string()))
    rows = zip(*(column.to_pylist() for column in texts.columns), strict=True)
    with replacing(path) as part, closing(sqlite3.connect(part)) as database:
        database.execute(CREATE)
        database.executemany("INSERT INTO accounts VALUES (?, ?, ?, ?)", rows)
        database.commit()
    return path


def url_of(path: Path) -> str:
    """The URL by which jobs look accounts up in this file."""
    return f"sqlite:///{quote(str(path.resolve()))}"
