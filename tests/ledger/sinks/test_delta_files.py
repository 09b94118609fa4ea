"""What is read of a Delta table's log without Spark."""

import json

import pytest

from ledgerops.ledger.sinks.committed import committed_files
from ledgerops.ledger.sinks.delta_files import last_batch, live_files, newest_version
from tests.refusals import refusal_of


@pytest.fixture
def commit(tmp_path):
    """Writes the next entry of the log of the table in `tmp_path`."""
    log = tmp_path / "_delta_log"
    log.mkdir()

    def write(*actions):
        number = len(list(log.iterdir()))
        (log / f"{number:020}.json").write_text("\n".join(map(json.dumps, actions)))

    return write


def added(path):
    return {"add": {"path": path, "size": 1, "dataChange": True}}


def test_the_files_are_those_that_were_added_and_not_removed(commit, tmp_path):
    commit({"metaData": {}}, added("a.parquet"), added("b.parquet"))
    commit({"remove": {"path": "a.parquet"}}, added("day=2026-01-01%2003/c%20d.parquet"))
    (tmp_path / "uncommitted.parquet").touch()

    expected = [tmp_path / "b.parquet", tmp_path / "day=2026-01-01 03" / "c d.parquet"]
    assert (live_files(tmp_path), committed_files(tmp_path)) == (expected, expected)
    assert newest_version(tmp_path) == 1


def test_the_newest_batch_is_that_of_the_query_asked_for(commit, tmp_path):
    for query, version in (("q1", 4), ("q1", 5), ("q2", 9)):
        commit({"txn": {"appId": query, "version": version}}, added("a.parquet"))
    assert [last_batch(tmp_path, query) for query in ("q1", "q2", "q3")] == [5, 9, None]


def test_without_a_table_there_is_nothing(tmp_path):
    assert (live_files(tmp_path), last_batch(tmp_path, "q1"), newest_version(tmp_path)) == ([], None, -1)


def test_a_log_that_has_lost_an_entry_is_refused(commit, tmp_path):
    for _ in range(3):
        commit(added("a.parquet"))
    (tmp_path / "_delta_log" / f"{1:020}.json").unlink()
    assert refusal_of(live_files, tmp_path).endswith("has no log entry for version 1; the output is damaged")


@pytest.mark.parametrize("text", ["{", "7", '["add"]', '{"add": {}}'])
def test_an_entry_that_is_damaged_is_refused(commit, tmp_path, text):
    commit(added("a.parquet"))
    (tmp_path / "_delta_log" / f"{0:020}.json").write_text(text)
    told = refusal_of(live_files, tmp_path)
    assert told.startswith("cannot read ") and told.endswith("; the output is damaged")
