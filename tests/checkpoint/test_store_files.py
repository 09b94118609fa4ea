from ledgerops.checkpoint.store_files import scan
from tests.checkpoint.fake import put, snapshot
from tests.tables import cases


def store(folder, *names):
    for name in names:
        put(folder / name, "x" * 10)
    return scan(folder)


@cases(
    "names, readable",
    ("nothing", [], set()),
    ("changes from the beginning", ["1.changelog", "2.changelog"], {1, 2}),
    ("the HDFS-backed store", ["1.delta", "2.delta", "2.snapshot"], {1, 2}),
    ("a snapshot and what came after", ["3.zip", "4.changelog", "5.changelog"], {3, 4, 5}),
    ("changes cut off", ["3.changelog", "4.changelog", "4.zip", "5.changelog"], {4, 5}),
    ("changes without their beginning", ["2.changelog", "3.changelog"], set()),
    ("a gap", ["1.changelog", "2.changelog", "4.changelog"], {1, 2}),
    ("snapshots only", ["1.zip", "2.zip", "3.zip"], {1, 2, 3}),
    ("names with ids", ["1_0a-b.changelog", "2_ff_0a-b.changelog", "2_ff.zip"], {1, 2}),
    ("strays", [".3.changelog.crc", ".4.changelog.0a.TID1.tmp", "1.changelog", "notes.txt"], {1}),
)
def test_a_version_is_readable_from_a_snapshot_and_every_change_after_it(tmp_path, names, readable):
    assert store(tmp_path, *names).readable == readable


def test_bytes_are_those_of_whole_copies_with_their_sst_files_and_of_changes(tmp_path):
    found = store(
        tmp_path, "1.zip", "2.changelog", "3.changelog", ".3.changelog.crc", "SSTs/1-a.sst", "SSTs/.1-a.sst.crc"
    )
    assert (found.snapshot_bytes, found.change_bytes) == (20, 20)
    assert [found.snapshot_for(version) for version in (1, 3, 0)] == [1, 1, None]


def test_a_snapshot_tells_its_rows_or_nothing_and_one_that_came_after_the_look_is_none_of_it(tmp_path):
    for name, rows in (("3", 42), ("4_0a-b", 43), ("5", None), ("31", 7)):
        snapshot(tmp_path / f"{name}.zip", rows)
    put(tmp_path / "6.zip", "no archive")
    found = scan(tmp_path)
    snapshot(tmp_path / "8.zip", 44)
    rows = [found.snapshot_rows(version) for version in range(3, 9)]
    assert rows == [42, 43, None, None, None, None]


def test_a_folder_that_is_not_there_has_no_files(tmp_path):
    assert scan(tmp_path / "absent").readable == set()
