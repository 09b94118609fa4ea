"""What is left of an Iceberg table, by the ancestry of its snapshots."""

from __future__ import annotations

import pytest

from ledgerops.agent import iceberg_table
from ledgerops.agent.hadoop_files import FileError
from ledgerops.agent.iceberg_table import EMPTY, IcebergTable
from ledgerops.model.records import TablePosition, TableRead
from tests.agent.iceberg_snapshots import History
from tests.build import T0


@pytest.fixture
def history():
    """Three snapshots of two files each: 100 and 200, 300 and 400, 500 and 600 bytes."""
    made = History()
    for number in range(3):
        made.commit(200 * number + 100, 200 * number + 200)
    return made


def left(history, version, file=0, initial=False):
    """What a reader at a position has left."""
    table = IcebergTable(history, "iceberg")
    table.advance(-1, 0.0)
    position = TablePosition(version, file, initial)
    table.follow(position)
    return table.unread(position)


def test_what_is_left_is_counted_from_the_newest_snapshot_back_to_the_position(history):
    first, second, third = history.snapshots

    assert left(history, first) == TableRead(third, 3, 6, 2100, since=T0, rows=60)
    assert left(history, second) == TableRead(third, 2, 4, 1800, since=T0 + 10, rows=40)
    assert left(history, EMPTY, file=-1) == TableRead(third, 3, 6, 2100, since=T0, rows=60)


def test_of_a_snapshot_that_was_read_in_part_the_files_are_known_alone(history):
    _, second, third = history.snapshots

    assert left(history, second, file=1) == TableRead(third, 2, 3, None, since=T0 + 10)


def test_a_snapshot_that_was_read_to_its_end_is_not_left(history):
    _, second, third = history.snapshots

    assert left(history, second, file=2) == TableRead(third, 1, 2, 1100, since=T0 + 20, rows=20)
    assert left(history, third, file=2) == TableRead(third, 0, 0, 0, rows=0)


def test_the_first_scan_of_a_table_reads_the_files_of_all_snapshots(history):
    _, second, third = history.snapshots

    assert left(history, second, file=1, initial=True) == TableRead(third, 2, 5, None)


@pytest.mark.parametrize("operation", ["replace", "delete", "overwrite"])
def test_what_a_stream_does_not_read_is_not_left(history, operation):
    third = history.head
    newest = history.commit(900, operation=operation)

    assert left(history, third, file=2) == TableRead(newest, 0, 0, 0, rows=0)
    history.commit(50)
    assert left(history, third, file=2) == TableRead(history.head, 1, 1, 50, since=T0 + 40, rows=10)


def test_an_empty_table_leaves_nothing():
    assert left(History(), EMPTY, file=-1) == TableRead(EMPTY, 0, 0, 0, rows=0)


def test_the_oldest_snapshot_is_told_once_older_ones_are_expired(history):
    first, second, third = history.snapshots
    del history.snapshots[first]

    read = left(history, second)
    assert (read.oldest, read.oldest_at, read.versions) == (second, T0 + 10, 2)
    assert left(history, third).oldest == second


def test_a_position_that_was_expired_is_said(history):
    first = next(iter(history.snapshots))
    del history.snapshots[first]

    with pytest.raises(FileError, match=f"snapshot {first} is not in the history of the table"):
        left(history, first)


def test_a_position_that_was_rolled_back_is_said(history):
    _, second, third = history.snapshots
    history.head = second

    with pytest.raises(FileError, match=f"snapshot {third} is not in the history of the table"):
        left(history, third)


def test_each_snapshot_is_read_once_and_a_long_backlog_over_several_rounds(history, monkeypatch):
    first, second, _ = history.snapshots
    monkeypatch.setattr(iceberg_table, "MAX_SNAPSHOTS", 1)
    table, position = IcebergTable(history, "iceberg"), TablePosition(first, 0, False)
    table.advance(-1, 0.0)

    table.follow(position)
    assert table.unread(position) is None
    table.follow(position)
    table.follow(position)
    assert (table.unread(position).versions, history.asked) == (3, [second, first])


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
    first, second, third = history.snapshots
    table = IcebergTable(history, "iceberg")
    table.advance(-1, 0.0)
    assert [each.version for each in table.commits(None)] == [first, second, third]

    fourth = history.commit(7, by=("id-1", 4))
    assert list(table.commits(third)) == []  # not yet seen
    table.advance(-1, 10.0)
    [commit] = table.commits(third)
    assert (commit.query_id, commit.written().batch_id, commit.written().version) == ("id-1", 4, fourth)
    assert (commit.written().rows, commit.written().files, commit.written().bytes) == (None, 1, 7)
    table.advance(-1, 20.0)
    assert table.head == fourth
