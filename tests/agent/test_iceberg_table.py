"""What is left of an Iceberg table, by the ancestry of its snapshots."""

import pytest

from ledgerops.agent import iceberg_table
from ledgerops.agent.hadoop_files import FileError
from ledgerops.agent.iceberg_table import EMPTY, NEWEST, IcebergTable
from ledgerops.model.records import TableCommit, TablePosition, TableRead
from tests.agent.iceberg_snapshots import History
from tests.build import T0
from tests.tables import cases


def three_snapshots():
    """Three snapshots of two files each: 100 and 200, 300 and 400, 500 and 600 bytes."""
    made = History()
    for number in range(3):
        made.commit(200 * number + 100, 200 * number + 200)
    return made


FIRST, SECOND, THIRD = three_snapshots().snapshots


@pytest.fixture
def history():
    return three_snapshots()


def left(history, version, file=0, initial=False):
    """What a reader at a position has left."""
    table = IcebergTable(history, "iceberg")
    table.advance(-1, 0.0)
    position = TablePosition(version, file, initial)
    table.follow(position)
    return table.unread(position)


def read(versions, files, size, since=None, rows=None):
    """So much is left before the third of three snapshots."""
    return TableRead(THIRD, versions, files, size, None if since is None else T0 + since, rows=rows)


@cases(
    "position, expected",
    ("all snapshots", (FIRST, 0), read(3, 6, 2100, since=0, rows=60)),
    ("from a snapshot on", (SECOND, 0), read(2, 4, 1800, since=10, rows=40)),
    ("from before the first", (EMPTY, -1), read(3, 6, 2100, since=0, rows=60)),
    ("of one that was read in part the files alone", (SECOND, 1), read(2, 3, None, since=10)),
    ("not one that was read to its end", (SECOND, 2), read(1, 2, 1100, since=20, rows=20)),
    ("nothing", (THIRD, 2), read(0, 0, 0, rows=0)),
    ("the first scan reads the files of all snapshots", (SECOND, 1, True), read(2, 5, None)),
)
def test_what_is_left_is_counted_from_the_newest_snapshot_back_to_the_position(history, position, expected):
    assert left(history, *position) == expected


def test_an_empty_table_leaves_nothing():
    assert left(History(), EMPTY, file=-1) == TableRead(EMPTY, 0, 0, 0, rows=0)


@pytest.mark.parametrize("operation", ["replace", "delete", "overwrite"])
def test_what_a_stream_does_not_read_is_not_left(history, operation):
    newest = history.commit(900, operation=operation)
    assert left(history, THIRD, file=2) == TableRead(newest, 0, 0, 0, rows=0)
    history.commit(50)
    assert left(history, THIRD, file=2) == TableRead(history.head, 1, 1, 50, since=T0 + 40, rows=10)


def test_the_oldest_snapshot_is_told_once_older_ones_are_expired(history):
    del history.snapshots[FIRST]
    found = left(history, SECOND)
    assert (found.oldest, found.oldest_at, found.versions) == (SECOND, T0 + 10, 2)
    assert left(history, THIRD).oldest == SECOND


def test_the_first_look_at_a_long_history_reads_what_it_needs(history):
    for _ in range(3 * NEWEST):
        history.commit(1)
    table = IcebergTable(history, "iceberg")
    table.advance(-1, 0.0)
    assert len(table.commits(None)) == NEWEST
    assert len(history.asked) <= NEWEST


def test_a_position_that_was_expired_or_rolled_back_is_said(history):
    history.head = SECOND
    with pytest.raises(FileError, match=f"snapshot {THIRD} is not in the history of the table"):
        left(history, THIRD)
    del history.snapshots[FIRST]
    with pytest.raises(FileError, match=f"snapshot {FIRST} is not in the history of the table"):
        left(history, FIRST)


def test_each_snapshot_is_read_once_and_a_long_backlog_over_several_rounds(history, monkeypatch):
    monkeypatch.setattr(iceberg_table, "MAX_SNAPSHOTS", 1)
    table, position = IcebergTable(history, "iceberg"), TablePosition(FIRST, 0, False)
    table.advance(-1, 0.0)

    table.follow(position)
    assert table.unread(position) is None
    table.follow(position)
    table.follow(position)
    assert (table.unread(position).versions, history.asked) == (3, [SECOND, FIRST])


def test_a_table_that_cannot_be_read_says_why(history):
    history.broken = "s3: 403"
    with pytest.raises(FileError, match="OSError: s3: 403"):
        IcebergTable(history, "iceberg").advance(-1, 0.0)


def test_of_a_table_that_is_only_written_to_old_snapshots_are_forgotten(history, monkeypatch):
    monkeypatch.setattr(iceberg_table, "MAX_ANCESTORS", 5)
    table, newest = IcebergTable(history, "iceberg"), history.head
    for number in range(40):
        history.commit(number)
        table.advance(-1, float(number))
        [commit] = table.commits(newest)
        newest = commit.version

    assert len(table._known) <= 2 * 5 + 1


def test_commits_come_once_and_in_their_order(history):
    table = IcebergTable(history, "iceberg")
    table.advance(-1, 0.0)
    assert [each.version for each in table.commits(None)] == [FIRST, SECOND, THIRD]

    fourth = history.commit(7, by=("id-1", 4))
    assert list(table.commits(THIRD)) == []  # not yet seen
    table.advance(-1, 10.0)
    [commit] = table.commits(THIRD)
    assert (commit.query_id, commit.written()) == ("id-1", TableCommit(fourth, T0 + 30, 4, None, 1, 7))
    table.advance(-1, 20.0)
    assert table.head == fourth
