"""Tables of databases that jobs look rows up in, by key: PostgreSQL and SQLite.

URLs: `postgresql://user:password@host:port/database` and `sqlite:///path`. The password appears in no message.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote

from ledgerops.errors import UserError
from ledgerops.ledger.postgres import describe_url, error_line

if TYPE_CHECKING:
    import psycopg

Values = tuple[Any, ...]  # the columns of a row, without its key

CONNECT_SECONDS = 5
STATEMENT_SECONDS = 30


class Unreachable(Exception):
    """The database does not answer now; it may later."""


class LookupFailed(Exception):
    """The rows cannot be had; the message says whose, from where and why."""


@dataclass(frozen=True)
class Table:
    """What is looked up. Names are put into SQL as they are: never take them from outside."""

    name: str
    key: str
    columns: tuple[str, ...]
    dates: tuple[str, ...] = ()  # those of the columns that hold dates, which SQLite keeps as text


class Sqlite:
    """A table in an SQLite file, opened anew for each question: one that was put in its place is seen, too."""

    def __init__(self, url: str, table: Table) -> None:
        self._path = sqlite_path(url)
        self.label = f"{table.name} in {self._path}"  # for messages
        wanted = ", ".join((table.key, *table.columns))
        self._question = f"SELECT {wanted} FROM {table.name} WHERE {table.key} IN (SELECT value FROM json_each(?))"
        self._dates = [place for place, column in enumerate(table.columns, start=1) if column in table.dates]

    def fetch(self, keys: Sequence[str]) -> Mapping[str, Values]:
        """The columns of each key found, dates parsed. Raises Unreachable if the file is locked, else LookupFailed."""
        try:
            with closing(sqlite3.connect(f"file:{quote(self._path)}?mode=ro", timeout=1.0, uri=True)) as connection:
                rows = [list(row) for row in connection.execute(self._question, [json.dumps(keys)])]
        except sqlite3.Error as problem:
            if "locked" in str(problem):
                raise Unreachable(str(problem)) from None
            raise LookupFailed(f"cannot look up {self.label}: {problem}") from None
        for row in rows:
            for place in self._dates:
                row[place] = row[place] and date.fromisoformat(row[place])
        return {row[0]: tuple(row[1:]) for row in rows}

    def close(self) -> None:
        """Nothing stays open between two questions."""


class Postgres:
    """A table of a PostgreSQL database. A connection that broke is opened anew by the next question."""

    def __init__(self, url: str, table: Table) -> None:
        """Raises UserError when `url` is not one of Postgres."""
        self._url = url
        self.label = f"{table.name} in {describe_url(url)}"  # for messages
        wanted = ", ".join((table.key, *table.columns))
        self._question = f"SELECT {wanted} FROM {table.name} WHERE {table.key} = ANY(%s)"
        self._connection: psycopg.Connection[tuple[Any, ...]] | None = None

    def fetch(self, keys: Sequence[str]) -> Mapping[str, Values]:
        """The columns of each key found.

        Raises Unreachable if the connection cannot be made or breaks, and LookupFailed if the statement is refused.
        """
        import psycopg

        try:
            if self._connection is None:
                self._connection = self._connect()
            rows = self._connection.execute(self._question, [list(keys)]).fetchall()
        except (psycopg.OperationalError, psycopg.InterfaceError) as problem:
            self.close()
            raise Unreachable(error_line(problem)) from None
        except psycopg.Error as problem:
            self.close()
            raise LookupFailed(f"cannot look up {self.label}: {error_line(problem)}") from None
        return {row[0]: tuple(row[1:]) for row in rows}

    def close(self) -> None:
        """Closes the connection, if one is open. The next `fetch` opens a new one."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _connect(self) -> psycopg.Connection[tuple[Any, ...]]:
        import psycopg

        connection = psycopg.connect(
            self._url,
            autocommit=True,
            connect_timeout=CONNECT_SECONDS,
            prepare_threshold=None,  # a pooler between us and the server may not keep prepared statements
            application_name="ledgerops",
            tcp_user_timeout=1000 * STATEMENT_SECONDS,  # or a host that vanished would hold the batch for hours
        )
        connection.execute(f"SET statement_timeout = {1000 * STATEMENT_SECONDS}")
        return connection


Database = Sqlite | Postgres


def check_table(url: str, table: Table) -> None:
    """Asks once. Raises UserError in one line when `url` is wrong, does not answer or lacks it."""
    try:
        with closing(open_database(url, table)) as database:
            database.fetch([""])
    except Unreachable as problem:
        raise UserError(f"cannot look up {database.label}: {problem}") from None
    except LookupFailed as problem:
        raise UserError(str(problem)) from None


def sqlite_path(url: str) -> str:
    """The file of an `sqlite:///path` URL."""
    return unquote(url.partition("://")[2].removeprefix("/") if url.startswith("sqlite:///") else "")


def open_database(url: str, table: Table) -> Database:
    """Where `table` is asked for; nothing is connected yet. UserError for another kind of URL."""
    try:
        return Sqlite(url, table) if sqlite_path(url) else Postgres(url, table)
    except UserError:
        raise UserError(
            f"cannot look up {table.name} in this database: expected postgresql://user@host:port/database "
            "or sqlite:///path"
        ) from None
