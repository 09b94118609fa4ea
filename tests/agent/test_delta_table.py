"""The history of a Delta table from its log, and what it costs to follow it."""

import pytest

from ledgerops.agent import delta_table
from ledgerops.agent.delta_table import SURVEY_SECONDS, DeltaTable
from ledgerops.agent.hadoop_files import FileError
from ledgerops.model.records import TablePosition, TableRead
from tests.agent.delta_logs import DeltaLog, LocalFiles
from tests.build import T0
from tests.tables import cases


@pytest.fixture
def files():
    return LocalFiles()


@pytest.fixture
def log(tmp_path):
    """A table with versions 0 to 5: version n has n files of 100 bytes."""
    made = DeltaLog(tmp_path / "orders")
    for version in range(6):
        made.commit(version, *[100] * version)
    return made


@pytest.fixture
def table(log, files):
    return DeltaTable(files, str(log.folder))


def at(version, file=-1, initial=False):
    return TablePosition(version, file, initial)


def left(table, position):
    """What a reader has left, after the table was asked."""
    table.advance(position.version - 1, T0)
    table.read_commits(position.version, table.head)
    return table.unread(position)


@cases(
    "position, expected",
    ("to the newest version", at(3), TableRead(5, versions=3, files=12, bytes=1200, since=T0 + 30)),
    ("the rest of a version", at(4, file=1), TableRead(5, 2, files=2 + 5, bytes=700, since=T0 + 40)),
    ("nothing at the head", at(6), TableRead(5, versions=0, files=0, bytes=0)),
    ("of a first snapshot only the versions", at(2, file=1, initial=True), TableRead(5, versions=4)),
)
def test_what_is_left_is_counted_from_the_position(table, position, expected):
    assert left(table, position) == expected


@cases(
    "position, expected",
    ("before it", at(6), TableRead(7, versions=2, files=5, bytes=500, since=T0 + 60)),
    ("nothing but the version after it", at(6, file=1), TableRead(7, versions=1, files=2, bytes=200, since=T0 + 70)),
    ("nothing, in an update that is the newest", at(7, file=0), TableRead(7, versions=0, files=0, bytes=0)),
)
def test_a_reader_of_the_change_feed_stays_in_an_update_that_it_has_read(table, log, position, expected):
    log.commit(6, 100, 100, 100, changes=2)
    log.commit(7, 100, 100, changes=1)
    assert left(table, position) == expected


@cases(
    "sizes, kind, expected",
    ("no new rows", [9000], {"new": False}, TableRead(6, 1, files=0, bytes=0, since=T0 + 60)),
    ("a hundred thousand files: read up to a limit", [100] * 100_000, {"by": ("id-1", 3)},
     TableRead(6, 1, files=100_000, bytes=7, since=T0 + 60)),
)  # fmt: skip
def test_what_a_version_adds_to_read(table, log, sizes, kind, expected):
    log.commit(6, *sizes, **kind)
    assert left(table, at(6)) == expected


def test_a_new_version_is_found_and_read_once(table, log, files):
    left(table, at(6))
    log.commit(6, 100)
    files.questions()

    table.advance(5, T0 + 10)
    table.read_commits(6, 6)
    table.read_commits(6, 6)
    assert files.questions() == [f"{n:020}.json" for n in (6, 8, 7, 6, 6)]  # found by three questions, then read


@pytest.mark.parametrize("versions", [1, 2, 7, 8, 9, 100])
def test_the_newest_of_many_new_versions_is_found_by_few_questions(tmp_path, files, versions):
    log = DeltaLog(tmp_path / "many")
    for version in range(versions):
        log.commit(version)
    table = DeltaTable(files, str(log.folder))
    table.advance(-1, T0)

    assert table.head == versions - 1
    assert len(files.questions()) <= 3 + 2 * (versions.bit_length() + 1)


def test_a_log_of_a_hundred_thousand_versions_is_never_listed():
    class Long:
        """A log whose versions up to 99,999 are all there."""

        asked = 0

        def exists(self, path):
            self.asked += 1
            name = path.rsplit("/", 1)[-1].removesuffix(".json")
            return name == "_delta_log" or (name.isdecimal() and int(name) < 100_000)

        def find(self, path, limit):
            self.asked += 1

    files = Long()
    table = DeltaTable(files, "/orders")
    for after, most in ((0, 40), (10, 1)):
        files.asked = 0
        table.advance(-1, T0 + after)
        assert (table.head, files.asked <= most) == (99_999, True)


def test_a_long_backlog_is_read_over_several_rounds(table, monkeypatch):
    monkeypatch.setattr(delta_table, "MAX_ENTRIES", 2)
    table.advance(0, T0)
    known = []
    for _ in range(3):
        table.read_commits(1, 5)
        read = table.unread(at(1))
        known.append((read.versions, read.files, read.since))

    assert known == [(5, None, T0 + 10), (5, None, T0 + 10), (5, 15, T0 + 10)]  # the age is known first


def test_of_a_backlog_of_very_many_versions_only_the_age_is_known(table, files, monkeypatch):
    monkeypatch.setattr(delta_table, "MAX_KEPT", 3)
    table.advance(0, T0)
    files.questions()

    table.read_commits(1, 5)
    assert len(files.questions()) == 2 * 3
    assert table.unread(at(1)) == TableRead(head=5, versions=5, since=T0 + 10)
    table.read_commits(3, 5)
    assert table.unread(at(3)).files == 3 + 4 + 5


def test_commits_that_were_passed_are_forgotten(table, log, monkeypatch):
    monkeypatch.setattr(delta_table, "MAX_KEPT", 2)
    for version in range(0, 6, 2):
        table.read_commits(version, version + 1)
    assert sorted(table.entries) == [4, 5]


def test_an_entry_that_is_too_long_is_known_by_its_first_line(table, log, monkeypatch):
    log.commit(6, *[100] * 50)
    monkeypatch.setattr(delta_table, "MAX_ENTRY_BYTES", 200)
    assert left(table, at(6)).files is None  # the sum of bytes is not in that line
    log.commit(7, *[100] * 50, by=("id-1", 3))
    monkeypatch.setattr(delta_table, "MAX_ENTRY_BYTES", 400)
    table.advance(7, T0)
    table.read_commits(7, 7)
    assert (table.unread(at(7)).files, table.unread(at(7)).bytes) == (50, 7)


def test_the_oldest_version_is_known_once_versions_were_deleted(table, log, files):
    left(table, at(6))
    assert table.oldest is None
    log.checkpoint(5)
    log.expire(before=3)

    table.advance(5, T0 + SURVEY_SECONDS)
    assert (table.checkpoint, table.oldest, table.oldest_at) == (5, 3, T0 + 30)
    files.questions()
    table.advance(5, T0 + 2 * SURVEY_SECONDS)
    # the table, its newest version, its checkpoint (twice), the oldest version, the next one and the one after it
    assert len(files.questions()) == 7
    log.expire(before=5)
    table.advance(5, T0 + 3 * SURVEY_SECONDS)
    assert (table.oldest, table.oldest_at) == (5, T0 + 50)


@pytest.fixture
def cut(log):
    """The log begins at a checkpoint."""
    log.checkpoint(4)
    log.expire(before=4)


def test_a_log_that_begins_at_a_checkpoint_is_followed_from_there(table, cut):
    table.advance(-1, T0)
    assert (table.head, table.oldest) == (5, 4)


@pytest.mark.parametrize("after", [None, 1])
def test_the_commits_of_a_log_that_begins_at_a_checkpoint_are_those_that_are_left(table, cut, after):
    table.advance(-1, T0)
    assert [each.version for each in table.commits(after)] == [4, 5]


def test_a_reader_whose_version_was_deleted_is_told_so(table, cut):
    table.advance(1, T0)
    assert table.head == 5
    with pytest.raises(FileError, match=r"^version 2 of the table is gone$"):
        table.read_commits(2, 5)
    assert table.unread(at(2)).versions == 4


def test_a_table_that_was_dropped_and_created_again_is_followed_from_its_beginning(table, log):
    left(table, at(6))
    log.expire(before=6)
    log.commit(0, 70)
    table.advance(-1, T0 + SURVEY_SECONDS)
    table.read_commits(0, 0)
    assert table.unread(at(0)) == TableRead(head=0, versions=1, files=1, bytes=70, since=T0)
