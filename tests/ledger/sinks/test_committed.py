"""Which files of an output belong to a committed batch."""

import json

import pytest

from ledgerops.errors import UserError
from ledgerops.ledger.sinks.committed import committed_files, last_batch


def log(output, name, *files, action="add"):
    (output / "_spark_metadata").mkdir(exist_ok=True)
    lines = [json.dumps({"path": f"file:///elsewhere/out%20put/{file}", "size": 1, "action": action}) for file in files]
    (output / "_spark_metadata" / name).write_text("\n".join(["v1", *lines]))


def file(output, name):
    (output / name).parent.mkdir(parents=True, exist_ok=True)
    (output / name).write_bytes(b"")
    return output / name


def test_files_of_committed_batches_are_named_in_order_and_strays_are_not(tmp_path):
    for stray in ("part-a.parquet", "part-b.parquet", "part-stray.parquet"):
        file(tmp_path, stray)
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
    names = [file.name for file in committed_files(tmp_path)]
    assert names == ["part-7.parquet", "part-8.parquet", "part 9.parquet", "part-10.parquet"]


def test_neither_a_deleted_file_nor_a_folder_that_only_looks_like_a_batch_is_named(tmp_path):
    log(tmp_path, "0", "part-a.parquet", action="delete")
    assert committed_files(tmp_path) == []
    (tmp_path / "other" / "batch=²").mkdir(parents=True)
    assert committed_files(tmp_path / "other") == []


def test_files_of_a_route_are_found_in_its_folders_wherever_the_output_lies_now(tmp_path):
    debit = file(tmp_path, "topic=transactions.debits/part-a.parquet")
    odd = file(tmp_path, "topic=a%3Ab/part-b.parquet")  # so Spark writes a value with a colon
    log(tmp_path, "0", "topic=transactions.debits/part-a.parquet", "topic=a%253Ab/part-b.parquet")
    assert committed_files(tmp_path) == [debit, odd]


def test_an_output_in_a_folder_named_like_a_routes_is_not_taken_for_one(tmp_path):
    log(tmp_path, "0", "plan=whale/part-a.parquet")
    assert committed_files(tmp_path) == [tmp_path / "part-a.parquet"]


@pytest.mark.parametrize(
    "entry",
    ['{"path": "part', "[]", '{"action": "add", "path": {}}', "[" * 100_000, "\udcff"],
    ids=["torn", "a list", "no path", "nested too deeply", "not UTF-8"],
)
def test_a_log_that_is_damaged_is_told_in_one_line(tmp_path, entry):
    file(tmp_path, "_spark_metadata/0").write_bytes(f"v1\n{entry}\n".encode("utf-8", "surrogateescape"))
    with pytest.raises(UserError, match=r"cannot read .*/_spark_metadata/0 \(.*\); the output is damaged"):
        committed_files(tmp_path)


def test_of_folders_by_batch_the_whole_ones_are_named_in_order(tmp_path):
    tenth = file(tmp_path, "batch=10/topic=x/part-a.parquet")
    second = file(tmp_path, "batch=2/part-b.parquet")
    for stray in (".batch=11/part-c.parquet", "batch=2/.part-b.parquet.crc", "batch=2/_SUCCESS", "batch=x/a.parquet"):
        file(tmp_path, stray)

    assert committed_files(tmp_path) == [second, tenth]
    assert last_batch(tmp_path) == 10


@pytest.mark.parametrize("made", [True, False], ids=["an empty folder", "no folder"])
def test_nothing_is_committed_before_the_first_batch(tmp_path, made):
    output = tmp_path / "output"
    if made:
        output.mkdir()
    assert committed_files(output) == []
    assert last_batch(output) is None
