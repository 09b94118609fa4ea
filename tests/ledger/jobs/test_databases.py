"""Real databases: an SQLite file, and PostgreSQL where it can be stopped under its reader."""

import sqlite3
import threading
from contextlib import closing
from datetime import date

import psycopg
import pytest

from ledgerops.ledger.jobs.databases import (
    LookupFailed,
    Table,
    Unreachable,
    check_table,
    open_database,
    sqlite_path,
)
from ledgerops.ledger.jobs.lookup import Lookup
from tests.postgres import Postgres
from tests.refusals import refusal_of
from tests.tables import cases

TABLE = Table("accounts", "account_id", ("district_id", "opened_on"), dates=("opened_on",))
CREATE = "CREATE TABLE accounts (account_id TEXT PRIMARY KEY, district_id INT, opened_on {})"
INSERT = "INSERT INTO accounts VALUES ('A1', 7, '2013-01-02'), ('A''2', NULL, NULL)"
WANTED = ["A1", "A'2", "A3", 'x"]; DROP TABLE accounts; --']
FOUND = {"A1": (7, date(2013, 1, 2)), "A'2": (None, None)}


@pytest.fixture
def sqlite_url(tmp_path):
    path = tmp_path / "a file#1.sqlite"
    with closing(sqlite3.connect(path)) as database:
        database.execute(CREATE.format("TEXT"))
        database.execute(INSERT)
        database.commit()
    return f"sqlite:///{path}".replace(" ", "%20").replace("#", "%23")


@pytest.mark.parametrize("kind", ["sqlite_url", "bank"])
def test_a_database_gives_the_rows_that_are_there(request, kind):
    url = request.getfixturevalue(kind)
    check_table(url, TABLE)
    with closing(open_database(url, TABLE)) as database:
        assert database.fetch(WANTED) == FOUND
        assert database.fetch([]) == {}


def test_sqlite_that_is_being_written_may_answer_later(sqlite_url, tmp_path):
    with closing(sqlite3.connect(sqlite_path(sqlite_url))) as writer:
        writer.isolation_level = None
        writer.execute("BEGIN EXCLUSIVE")
        with (
            closing(open_database(sqlite_url, TABLE)) as database,
            pytest.raises(Unreachable, match="database is locked"),
        ):
            database.fetch(["A1"])


def test_a_missing_file_and_a_missing_table_are_said(tmp_path):
    told = refusal_of(check_table, f"sqlite:///{tmp_path}/none.sqlite", TABLE)
    assert told == f"cannot look up accounts in {tmp_path}/none.sqlite: unable to open database file"
    assert not (tmp_path / "none.sqlite").exists()

    sqlite3.connect(tmp_path / "empty.sqlite").close()
    with pytest.raises(LookupFailed, match="no such table: accounts"):
        open_database(f"sqlite:///{tmp_path}/empty.sqlite", TABLE).fetch(["A1"])


@pytest.mark.parametrize("url", ["mysql://me:secret@db/bank", "sqlite:accounts.db", "sqlite:///", ""])
def test_another_url_is_refused_without_its_password(url):
    told = refusal_of(check_table, url, TABLE)
    assert told.endswith(": expected postgresql://user@host:port/database or sqlite:///path")
    assert "secret" not in told


@cases(
    "url",
    ("nobody listens", "me:secret@127.0.0.1:1/bank"),
    ("not a port", "me:secret@127.0.0.1:port/bank"),
    ("an unknown option", "me:secret@127.0.0.1/bank?secret=secret"),
    ("an encoded password", "me:sec%72et@127.0.0.1:1/bank"),
)
def test_an_unreachable_postgres_is_one_line_without_the_password(url):
    told = refusal_of(check_table, f"postgresql://{url}", TABLE)
    assert told.startswith("cannot look up accounts")
    assert not {"secret", "sec%72et", "\n"} & set(told.replace('"', " ").split(" "))
    assert ":secret@" not in told


def fill(url):
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("DROP TABLE IF EXISTS accounts")
        connection.execute(CREATE.format("DATE"))
        connection.execute(INSERT)
        connection.execute("CHECKPOINT")  # this server writes at leisure; a killed one would forget the table


@pytest.fixture
def bank(postgres):
    """The URL of a PostgreSQL with the table."""
    fill(postgres.url)
    yield postgres.url
    with psycopg.connect(postgres.url, autocommit=True) as connection:
        connection.execute("DROP TABLE accounts")


@pytest.fixture(scope="module")
def own(postgres, tmp_path_factory):
    """A server with the table, that may be stopped and killed."""
    with Postgres(tmp_path_factory.mktemp("own")) as server:
        fill(server.url)
        yield server


def test_a_missing_table_in_postgres_is_not_waited_for(postgres):
    assert refusal_of(check_table, postgres.url, Table("nowhere", "account_id", ("district_id",))).startswith(
        f"cannot look up nowhere in {postgres.url}: relation"
    )


@pytest.mark.parametrize("end", ["stop", "kill"])
def test_a_lookup_goes_on_when_postgres_has_been_restarted(own, end):
    with closing(open_database(own.url, TABLE)) as database:
        lookup = Lookup(database, ttl=0.0)
        assert lookup.rows(["A1"]) == {"A1": FOUND["A1"]}
        getattr(own, end)()
        back = threading.Timer(0.5, own.start)
        back.start()
        try:
            assert lookup.rows(["A1", "A3"]) == {"A1": FOUND["A1"], "A3": None}
        finally:
            back.join()
