import json
import sqlite3
from contextlib import closing

from ledgerops.ledger.plan.plan import parse_plan
from ledgerops.ledger.sources.accounts import accounts_of_csv, accounts_of_plan, url_of
from ledgerops.ledger.sources.customers import account_record

HEADER = "account_id,district_id,frequency,parseddate,year,month,day,date"


def rows(path):
    with closing(sqlite3.connect(path)) as database:
        return database.execute("SELECT * FROM accounts ORDER BY account_id").fetchall()


def csv(folder, *lines):
    (folder / "accounts.csv").write_text("\n".join([HEADER, *lines, ""]))


def test_the_good_rows_of_the_csv_are_in_the_table_and_the_others_in_the_rejects(tmp_path):
    csv(tmp_path, "A2,55,Weekly,2013-01-01,2013,1,1,2013-01-05", "A1,x,,,,,,2013-01-01", "A3,7,,,,,,2012-02-29")

    path = accounts_of_csv(tmp_path, tmp_path / "work")

    assert rows(path) == [("A2", 55, "Weekly", "2013-01-05"), ("A3", 7, None, "2012-02-29")]
    [reject] = (tmp_path / "work" / "rejects.jsonl").read_text().splitlines()
    assert json.loads(reject)["reason"] == "district_id 'x' is not a whole number"
    assert [file.name for file in (tmp_path / "work").glob("accounts*")] == [path.name]


def test_a_file_of_an_earlier_run_is_replaced(tmp_path):
    for district in (1, 2):
        csv(tmp_path, f"A1,{district},,,,,,2013-01-01")
        assert rows(accounts_of_csv(tmp_path, tmp_path / "work")) == [("A1", district, None, "2013-01-01")]


def test_invented_accounts_are_those_of_the_reference_data(tmp_path):
    plan = parse_plan("seed: 7\nphases: [{shape: constant, rate: 1}]\nkeys: {customers: 2, accounts: 2}\n")
    path = accounts_of_plan(plan, tmp_path)

    records = [account_record(name, 7) for name in ("A00000001", "A00000002")]
    assert rows(path) == [(r["account_id"], int(r["district_id"]), r["frequency"], r["date"]) for r in records]


def test_the_url_is_absolute_and_quoted(tmp_path):
    assert url_of(tmp_path / "a b.sqlite") == f"sqlite:///{tmp_path}/a%20b.sqlite"
