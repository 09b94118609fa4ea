"""A commit of a Delta table from its entry in the log."""

import json

import pytest

from ledgerops.model.delta_log import last_checkpoint, parse_commit
from ledgerops.model.records import TableCommit, TablePosition
from tests.build import T0
from tests.tables import cases

ADD = {"path": "p", "size": 500, "modificationTime": 1795454637391, "dataChange": True}
STREAMED = {
    "timestamp": 1795454637413,
    "operation": "STREAMING UPDATE",
    "operationParameters": {"outputMode": "Append", "queryId": "id-1", "epochId": "7"},
    "operationMetrics": {"numRemovedFiles": "0", "numAddedFiles": "2", "numOutputRows": "3", "numOutputBytes": "1200"},
}


def entry(*actions):
    return "\n".join(map(json.dumps, actions))


CUT = entry({"commitInfo": STREAMED}, {"add": ADD})[:-5]
WHOLE = entry({"commitInfo": STREAMED}, {"txn": {"appId": "id-1"}}, {"add": ADD}, {"add": ADD | {"size": 700}})


@pytest.mark.parametrize(("text", "whole", "sizes"), [(WHOLE, True, (500, 700)), (CUT, False, None)])
def test_the_commit_of_a_streaming_query_says_its_batch_rows_files_and_bytes(text, whole, sizes):
    commit = parse_commit(4, text, T0, whole=whole)
    assert commit.written() == TableCommit(4, T0, 7, 3, 2, 1200)
    assert (commit.query_id, commit.sizes) == ("id-1", sizes)


def test_a_value_may_hold_signs_that_end_a_line_elsewhere():
    added = [{"add": ADD | {"stats": "a\u2028b\u2029c\u0085d"}}, {"add": ADD | {"size": 700}}]
    text = "\n".join(json.dumps(each, ensure_ascii=False) for each in ({"commitInfo": STREAMED}, *added))
    assert parse_commit(4, text, T0).sizes == (500, 700)


def test_files_without_new_rows_are_written_but_not_to_be_read():
    told = {"commitInfo": {"inCommitTimestamp": 1795454637000}}
    commit = parse_commit(4, entry(told, {"add": ADD | {"dataChange": False}}, {"remove": {"path": "o"}}), T0)
    assert (commit.files, commit.bytes, commit.sizes) == (1, 500, ())
    assert commit.at == 1795454637.0, "the time in the commit counts before that of the file"


@cases(
    "position, left",
    ("a version before it", TablePosition(3, 9, False), (3, 60)),
    ("none of its files", TablePosition(4, -1, False), (3, 60)),
    ("its first file", TablePosition(4, 0, False), (2, 50)),
    ("all its files", TablePosition(4, 2, False), (0, 0)),
)
def test_what_is_left_of_a_version_depends_on_the_file_that_was_read_last(position, left):
    commit = parse_commit(4, entry(*({"add": ADD | {"size": size}} for size in (10, 20, 30))), T0)
    assert commit.unread(position) == left


def test_of_a_cut_version_that_is_read_in_part_nothing_is_known():
    cut = parse_commit(4, entry({"commitInfo": STREAMED}), T0, whole=False)
    assert cut.unread(TablePosition(4, 0, False)) is None
    assert cut.unread(TablePosition(3, 0, False)) == (2, 1200)
    assert parse_commit(4, "", T0, whole=False).unread(TablePosition(3, 0, False)) is None


@cases(
    "text",
    ("empty", ""),
    ("torn", "{"),
    ("no objects", "[1]\n5\nnull"),
    ("actions that are no objects", '{"commitInfo": 5}\n{"add": 7}'),
    ("a list", '{"commitInfo": {"operation": "STREAMING UPDATE", "operationParameters": []}}'),
    ("metrics that are no object", '{"commitInfo": {"operationMetrics": 1}}'),
    ("no sizes", '{"add": {"size": -5}}\n{"add": {"size": "many"}}\n{"add": {"size": true}}'),
)
def test_an_entry_that_is_damaged_is_read_as_far_as_it_goes(text):
    commit = parse_commit(4, text, T0)
    assert (commit.at, commit.rows, commit.query_id, commit.batch_id, commit.bytes) == (T0, None, None, None, 0)


def test_the_last_checkpoint_is_a_version_or_unknown():
    assert last_checkpoint('{"version":10,"size":9}') == 10
    assert last_checkpoint("{") is last_checkpoint("") is last_checkpoint('{"size":9}') is None
