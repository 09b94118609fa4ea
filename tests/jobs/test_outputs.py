import json

import pytest

from ledgerops.jobs.outputs import committed_files, last_batch


def log(output, name, *files, action="add"):
    (output / "_spark_metadata").mkdir(exist_ok=True)
    lines = [json.dumps({"path": f"file:///elsewhere/out%20put/{file}", "size": 1, "action": action}) for file in files]
    (output / "_spark_metadata" / name).write_text("\n".join(["v1", *lines]))


def test_files_of_committed_batches_are_named_in_order_and_strays_are_not(tmp_path):
    for stray in ("part-a.parquet", "part-b.parquet", "part-stray.parquet"):
        (tmp_path / stray).write_bytes(b"")
    log(tmp_path, "1", "part-b.parquet")
    log(tmp_path, "0", "part-a.parquet")
    log(tmp_path, ".2.0f3d.tmp", "part-stray.parquet")
    log(tmp_path, ".1.crc")

    assert committed_files(tmp_path) == [tmp_path / "part-a.parquet", tmp_path / "part-b.parquet"]
    assert last_batch(tmp_path) == 1


def test_a_compact_file_stands_for_all_before_it(tmp_path):
    log(tmp_path, "8", "part-8.parquet")
    log(tmp_path, "9.compact", "part-7.parquet", "part-8.parquet", "part%209.parquet")
    log(tmp_path, "10", "part-10.parquet")

    assert [file.name for file in committed_files(tmp_path)] == [
        "part-7.parquet",
        "part-8.parquet",
        "part 9.parquet",
        "part-10.parquet",
    ]


def test_a_deleted_file_is_not_named(tmp_path):
    log(tmp_path, "0", "part-a.parquet", action="delete")

    assert committed_files(tmp_path) == []


@pytest.mark.parametrize("made", [True, False], ids=["an empty folder", "no folder"])
def test_nothing_is_committed_before_the_first_batch(tmp_path, made):
    output = tmp_path / "output"
    if made:
        output.mkdir()

    assert committed_files(output) == []
    assert last_batch(output) is None
