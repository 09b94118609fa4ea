import re
from contextlib import closing
from dataclasses import replace
from functools import partial
from sqlite3 import connect

import pytest
from pyspark.errors import StreamingQueryException

from ledgerops.ledger.jobs.account_lookup import JOB, transform
from ledgerops.ledger.sources.accounts import url_of
from tests.ledger.jobs.feed import transaction
from tests.ledger.jobs.oracle import ask, disordered, rows_of

pytestmark = pytest.mark.spark

FRESH = replace(JOB, transform=partial(transform, ttl=0.0))
WANTED = "transaction_id, district_id, frequency, opened_on::VARCHAR, known"
CREATE = "CREATE TABLE accounts (account_id TEXT PRIMARY KEY, district_id INT, frequency TEXT, opened_on TEXT)"
ACCOUNTS = [("A0", 7, "Weekly", "2013-01-02"), ("A1", 8, None, None), ("A2", None, "Monthly", "2012-02-29")]


@pytest.fixture
def accounts(tmp_path):
    """An SQLite file with ACCOUNTS."""
    path = tmp_path / "accounts.sqlite"
    write(path, CREATE)
    for row in ACCOUNTS:
        write(path, "INSERT INTO accounts VALUES (?, ?, ?, ?)", row)
    return path


def write(path, statement, values=()):
    with closing(connect(path)) as database, database:
        database.execute(statement, values)


def test_every_row_gets_the_account_that_a_join_gives_it(feed, accounts):
    case = feed(JOB)
    runs = disordered()
    for number, row in enumerate(rows_of(runs)):
        row["account_id"] = None if number % 11 == 0 else f"A{number % 5}"
    case.run_each(runs, services={"accounts": url_of(accounts)})

    values = ", ".join(f"({', '.join('NULL' if one is None else repr(one) for one in row)})" for row in ACCOUNTS)
    question = f"""
        SELECT rows.*, district_id, frequency, opened_on::DATE, a.account_id IS NOT NULL
        FROM rows LEFT JOIN (VALUES {values}) a(account_id, district_id, frequency, opened_on) USING (account_id)
        ORDER BY ALL
    """
    expected = ask(question, rows_of(runs))
    assert case.rows() == expected
    assert {row[-1] for row in expected} == {True, False}


def of(account, *names):
    return [transaction(name, "10:00", account_id=account) for name in names]


def test_a_changed_account_is_seen_and_rows_already_written_stay(feed, accounts):
    case, services = feed(FRESH), {"accounts": url_of(accounts)}
    case.work(of("A0", "t1") + of("A9", "t2"), services=services)
    write(accounts, "UPDATE accounts SET frequency = 'Daily' WHERE account_id = 'A0'")
    write(accounts, "INSERT INTO accounts (account_id) VALUES ('A9')")
    case.work(of("A0", "t3") + of("A9", "t4"), services=services)

    assert case.rows(WANTED) == [
        ("t1", 7, "Weekly", "2013-01-02", True),
        ("t2", None, None, None, False),
        ("t3", 7, "Daily", "2013-01-02", True),
        ("t4", None, None, None, True),
    ]


def test_a_batch_that_cannot_be_looked_up_fails_and_is_repeated_without_loss(feed, accounts):
    case, services = feed(FRESH), {"accounts": url_of(accounts)}
    case.work(of("A0", "t1"), services=services)
    case.add(of("A0", "t2"), of("A2", "t3"))
    aside = accounts.rename(accounts.with_name("aside"))

    told = re.escape(f"LookupFailed: cannot look up accounts in {accounts}: unable to open database file")
    with pytest.raises(StreamingQueryException, match=told):
        case.run(services=services)
    assert case.rows("transaction_id") == [("t1",)]

    aside.rename(accounts)
    case.run(services=services)

    assert case.rows("transaction_id, district_id") == [("t1", 7), ("t2", 7), ("t3", None)]
