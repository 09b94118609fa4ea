import csv
from datetime import UTC, date, datetime

import duckdb
import pyarrow as pa

from ledgerops.ledger.sources import customers
from ledgerops.ledger.sources.arrow_file import FileRows
from ledgerops.ledger.sources.csv_file import rejected
from tests.ledger.sources.reference import write_reference
from tests.tables import cases

IDS = ["C3", "C1", "C2"]


def test_generated_customers_depend_on_the_seed_and_not_on_who_else_is_generated():
    assert customers.generate_customers(["C1"], 7) == customers.generate_customers(IDS, 7).slice(1, 1)
    assert customers.generate_customers(IDS, 7) != customers.generate_customers(IDS, 8)


def test_generated_tables_keep_the_order_of_the_ids_and_have_no_gaps():
    made, accounts = customers.generate_customers(IDS), customers.generate_accounts(["A9", "A8"])
    assert made["customer_id"].to_pylist() == IDS
    assert accounts["account_id"].to_pylist() == ["A9", "A8"]
    assert sum(column.null_count for column in (*made.columns, *accounts.columns)) == 0
    assert all(1 <= district <= 77 for district in made["district_id"].to_pylist())


def test_written_reference_data_reads_back_as_generated(tmp_path):
    write_reference(tmp_path, IDS, ["A1", "A2"], seed=3)
    assert customers.read_customers(tmp_path, tmp_path / "work") == customers.generate_customers(IDS, 3)
    assert customers.read_accounts(tmp_path, tmp_path / "work") == customers.generate_accounts(["A1", "A2"], 3)
    assert rejected(tmp_path / "work") == []


def change(path, line, column, value):
    with path.open(newline="") as file:
        records = list(csv.DictReader(file))
    records[line - 2][column] = value
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(records[0]))
        writer.writeheader()
        writer.writerows(records)


@cases(
    "name, column, value, reason",
    ("customer without id", "customers.csv", "customer_id", "", "no customer_id"),
    ("customer twice", "customers.csv", "customer_id", "C3", "repeated customer_id"),
    ("district", "customers.csv", "district_id", "x", "district_id 'x' is not a whole number"),
    ("day that never was", "customers.csv", "date", "2013-02-30", "date '2013-02-30' is not a date"),
    ("account without id", "accounts.csv", "account_id", "", "no account_id"),
    ("date in another form", "accounts.csv", "date", "20130101", "date '20130101' is not a date"),
)
def test_a_bad_row_is_kept_aside(tmp_path, name, column, value, reason):
    write_reference(tmp_path, IDS, ["A3", "A1"])
    change(tmp_path / name, 3, column, value)
    read = customers.read_customers if name == "customers.csv" else customers.read_accounts
    table = read(tmp_path, tmp_path / "work")
    assert table.num_rows == (2 if name == "customers.csv" else 1)
    [entry] = rejected(tmp_path / "work")
    assert (entry["file"], entry["line"], entry["reason"]) == (name, 3, reason)


def test_rejects_of_one_file_leave_those_of_another_and_missing_texts_are_absent_not_empty(tmp_path):
    write_reference(tmp_path, IDS, ["A1", "A2"])
    change(tmp_path / "customers.csv", 2, "district_id", "")
    change(tmp_path / "customers.csv", 3, "email", "")
    change(tmp_path / "accounts.csv", 2, "district_id", "")
    for _ in range(2):
        read = customers.read_customers(tmp_path, tmp_path / "work")
        customers.read_accounts(tmp_path, tmp_path / "work")
    assert read["email"][0].as_py() is None
    assert sorted(str(entry["file"]) for entry in rejected(tmp_path / "work")) == ["accounts.csv", "customers.csv"]


def test_the_real_files_are_read_whole(tmp_path, data_dir):
    read = customers.read_customers(data_dir, tmp_path)
    accounts = customers.read_accounts(data_dir, tmp_path)
    for name, table in (("customers", read), ("accounts", accounts)):
        assert [(table.num_rows,)] == duckdb.sql(f"SELECT count(*) FROM '{data_dir}/{name}.csv'").fetchall()
    assert rejected(tmp_path) == []
    first = read.select(["customer_id", "city", "district_id", "updated_at"]).slice(0, 1).to_pylist()[0]
    assert [*first.values()] == ["C00000001", "Albuquerque", 18, datetime(1990, 12, 13, tzinfo=UTC)]
    assert accounts["opened_on"][0].as_py() == date(2013, 1, 1)


def test_prepared_customers_are_generated_once(tmp_path):
    first = customers.prepare_generated(IDS, tmp_path, 1)
    written = first.path.stat().st_mtime_ns
    assert customers.prepare_generated(IDS, tmp_path, 1) == first
    assert first.path.stat().st_mtime_ns == written
    assert customers.prepare_generated(IDS, tmp_path, 2).path != first.path
    table = pa.Table.from_batches(FileRows(first.path).batches(0, 0, first.rows))
    assert table.to_pylist() == customers.generate_customers(IDS, 1).to_pylist()
