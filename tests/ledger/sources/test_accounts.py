import sqlite3
from contextlib import closing

from ledgerops.ledger.sources.accounts import url_of, write_accounts
from ledgerops.ledger.sources.customers import account_record, generate_accounts, read_accounts
from tests.ledger.sources.reference import write_reference


def rows(path):
    with closing(sqlite3.connect(path)) as database:
        return database.execute("SELECT * FROM accounts ORDER BY account_id").fetchall()


def record(name, seed=0):
    made = account_record(name, seed)
    return made["account_id"], int(made["district_id"]), made["frequency"], made["date"]


def test_the_accounts_of_the_file_are_in_the_table_and_nothing_else_is_left(tmp_path):
    write_reference(tmp_path, [], ["A2", "A1"])
    write_accounts(read_accounts(tmp_path, tmp_path), tmp_path / "work" / "accounts.sqlite")

    assert rows(tmp_path / "work" / "accounts.sqlite") == [record("A1"), record("A2")]
    assert [file.name for file in (tmp_path / "work").iterdir()] == ["accounts.sqlite"]


def test_a_file_of_an_earlier_run_is_replaced(tmp_path):
    for seed in (1, 2):
        write_accounts(generate_accounts(["A1"], seed), tmp_path / "accounts.sqlite")
        assert rows(tmp_path / "accounts.sqlite") == [record("A1", seed)]


def test_the_url_is_absolute_and_quoted(tmp_path):
    assert url_of(tmp_path / "a b.sqlite") == f"sqlite:///{tmp_path}/a%20b.sqlite"
