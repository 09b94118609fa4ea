"""The Delta table that drills feed: read back by another reader of its log."""

import json

import pyarrow.parquet as pq
import pytest

from ledgerops.drills.harness.delta_table import DeltaTable
from ledgerops.ledger.sinks.delta_files import live_files, newest_version

ROW = {"id": "1", "key": "k", "amount": 0.5, "event_time": "2026-11-25T10:00:00.250Z"}


@pytest.fixture
def table(tmp_path):
    made = DeltaTable(tmp_path)
    for number in range(3):
        made.append([{**ROW, "id": str(number)}])
    return made


def actions(folder, version):
    """By kind, those of one version."""
    text = (folder / "_delta_log" / f"{version:020}.json").read_text()
    return [next(iter(json.loads(line).items())) for line in text.splitlines()]


def rows_of(folder):
    return [row for file in live_files(folder) for row in pq.read_table(file).to_pylist()]


def test_each_append_is_a_version_with_one_file(tmp_path, table):
    assert (table.version, newest_version(tmp_path), len(live_files(tmp_path))) == (3, 3, 3)
    assert [row["id"] for row in rows_of(tmp_path)] == ["0", "1", "2"]
    assert rows_of(tmp_path)[0]["event_time"].isoformat() == "2026-11-25T10:00:00.250000+00:00"


def test_compaction_changes_files_and_no_rows(tmp_path, table):
    before, files = rows_of(tmp_path), live_files(tmp_path)
    table.compact()

    assert (rows_of(tmp_path), len(live_files(tmp_path))) == (before, 1)
    assert all(file.exists() for file in files)
    assert not any(body["dataChange"] for kind, body in actions(tmp_path, 4) if kind in ("add", "remove"))


def test_vacuum_deletes_the_files_that_a_slow_reader_still_needs(tmp_path, table):
    before, files = rows_of(tmp_path), live_files(tmp_path)
    table.vacuum()

    assert rows_of(tmp_path) == before
    assert not any(file.exists() for file in files)


def test_a_column_is_added_by_a_version_of_its_own(tmp_path, table):
    table.add_column()
    table.append([ROW])

    schemas = [json.loads(body["schemaString"]) for kind, body in actions(tmp_path, 4) if kind == "metaData"]
    assert [[field["name"] for field in schema["fields"]][-1] for schema in schemas] == ["added"]
    assert len(rows_of(tmp_path)) == 4


def test_a_version_of_another_writer_is_never_overwritten(tmp_path, table):
    other = tmp_path / "_delta_log" / f"{4:020}.json"
    other.write_text("{}\n")
    table.append([ROW])

    assert (other.read_text(), table.version) == ("{}\n", 5)
