"""What the log of a file sink says of each batch, and what it costs to follow it."""

import json
from pathlib import Path

import pytest

from ledgerops.agent import file_sink
from ledgerops.agent.file_sink import FileSinkLog
from ledgerops.agent.hadoop_files import FileError
from ledgerops.model.records import TableCommit
from tests.agent.delta_logs import LocalFiles
from tests.build import T0
from tests.tables import cases


@pytest.fixture
def files():
    return LocalFiles()


@pytest.fixture
def log_from(tmp_path, files):
    """Batches 0 to 12: batch n added n files of 100 bytes; the entry of batch 9 repeats those before it."""
    folder = tmp_path / "_spark_metadata"
    folder.mkdir()
    for batch in range(13):
        lines = [json.dumps(added(batch)) for _ in range(batch)]
        (folder / ("9.compact" if batch == 9 else str(batch))).write_text("\n".join(["v1", *lines]))
    return lambda first, begun=None: FileSinkLog(files, str(folder), "id-1", first, begun)


def added(batch, action="add"):
    return {"path": f"file:/out/{batch}", "size": 100, "modificationTime": (T0 + batch) * 1000, "action": action}


def told(log, last, since=None):
    """The batches that are told when the last one has ended, and those since this one were not."""
    log.advance(last, T0)
    return [each.batch_id for each in log.commits(since)]


def test_each_batch_since_is_told_with_its_files_and_bytes(log_from):
    log = log_from(2)
    assert told(log, 2) == [2]
    log.advance(4, T0)

    commits = log.commits(2)
    assert [each.written() for each in commits] == [
        TableCommit(3, T0 + 3, 3, None, 3, 300),
        TableCommit(4, T0 + 4, 4, None, 4, 400),
    ]
    assert {each.query_id for each in commits} == {"id-1"}


def test_a_batch_whose_entry_repeats_all_before_it_is_passed_over_unread(log_from, files):
    log = log_from(8)
    assert told(log, 10) == [8, 10]
    assert files.questions().count("9") == 1
    assert "9.compact" not in files.asked


def test_no_batch_is_lost_after_a_look_that_found_only_one_that_is_passed_over(log_from):
    log = log_from(9)
    assert told(log, 9) == []
    assert told(log, 12) == [10, 11, 12]


def test_the_batches_of_the_run_before_the_first_look_count(log_from):
    assert told(log_from(10), 12) == [10, 11, 12]


def test_a_batch_that_is_passed_over_is_not_looked_for_again(log_from, files):
    log = log_from(8)
    assert told(log, 9) == [8]
    files.questions()
    assert (log.commits(8), files.questions()) == ([], [])
    assert told(log, 10, since=8) == [10]


def test_of_many_batches_the_newest_are_read(log_from, monkeypatch):
    monkeypatch.setattr(file_sink, "MAX_ENTRIES", 2)
    assert told(log_from(4), 12) == [11, 12]


def test_the_newest_entry_of_a_run_before_is_told_once_where_those_of_the_first_batches_are_deleted(log_from, files):
    log = log_from(0, T0 + 20)
    assert told(log, -1) == []
    for batch in range(10):
        (Path(log.name) / (f"{batch}.compact" if batch == 9 else str(batch))).unlink()
    assert told(log, 1) == [12]
    log.advance(2, T0)
    assert (log.commits(12), files.questions().count("_spark_metadata")) == ([], 1)
    assert told(log, 12, since=12) == [10, 11], "and not again when the run has come there"


def test_the_newest_entry_of_a_run_before_may_have_no_file(log_from):
    log = log_from(0, T0 + 20)
    (Path(log.name) / "13").write_text("v1")
    assert told(log, 0) == [0, 12]


@pytest.mark.parametrize(("begun", "batches"), [(T0 + 12, [11]), (None, [11]), (T0 + 13, [11, 12])])
def test_an_entry_that_the_run_has_written_itself_is_told_when_its_batch_has_ended(log_from, begun, batches):
    assert told(log_from(11, begun), 11) == batches


ADDED, DELETED = json.dumps(added(0)), json.dumps(added(0, "delete"))


@cases(
    "lines, files_added",
    ("no file", ["v1"], 0),
    ("a file that is gone", ["v1", ADDED, DELETED], 1),
    ("cut", ["v1", ADDED, ADDED[:40]], 1),
    ("no entries", ["v1", "[]", "7", '{"action":"add"}', '{"action":"add","size":"x"}'], 0),
    ("empty", [], 0),
)
def test_what_is_no_entry_of_a_file_does_not_count(tmp_path, files, lines, files_added):
    (tmp_path / "0").write_text("\n".join(lines))
    log = FileSinkLog(files, str(tmp_path), "id-1", 0, None)
    log.advance(0, T0)
    assert [(commit.files, commit.bytes) for commit in log.commits(None)] == [(files_added, 100 * files_added)]


def test_before_the_first_batch_nothing_is_asked_and_a_log_that_cannot_be_read_is_an_error(log_from, files):
    log = log_from(0)
    log.advance(-1, T0)
    assert (log.commits(None), files.questions()) == ([], [])
    files.broken = {"*"}
    log.advance(3, T0)
    with pytest.raises(FileError):
        log.commits(None)
