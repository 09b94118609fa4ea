"""The files of a checkpoint, as Spark 4.2 writes them."""

import os
import shutil

import pytest

from ledgerops.checkpoint.batch_log import NO_BATCH, BatchLog, metadata_log, parse_batch, parse_query_id
from tests.checkpoint.fake import put

OFFSETS = """v1
{"batchWatermarkMs":%d,"batchTimestampMs":1,"conf":{"spark.sql.shuffle.partitions":"4"}}
{"transactions":{"0":%d,"1":7}}
-
{"transactions":{"0":5},"customers":{"0":2}}
{"logOffset":3}
"""


@pytest.fixture
def log(tmp_path):
    """Two batches planned, one committed."""
    for batch, offset in enumerate((3, 9)):
        put(tmp_path / "offsets" / str(batch), OFFSETS % (1500 * batch, offset))
        (tmp_path / "offsets" / f".{batch}.crc").touch()
    put(tmp_path / "commits" / "0", "v1\n{}")
    put(tmp_path / "sources" / "0" / "0", '\0v1\n{"transactions":{"0":1}}')
    put(tmp_path / "metadata", '{"id":"a-b-c"}')
    return BatchLog(tmp_path)


def test_planned_and_committed_batches_are_distinct_and_before_the_first_commit_a_source_is_where_it_began(log):
    assert (log.planned, log.committed) == ({0, 1}, {0})
    assert (log.newest_planned, log.newest_committed) == (1, 0)
    assert log.newest.ends == {("transactions", "0"): 5, ("transactions", "1"): 7, ("customers", "0"): 2}
    batch, read = log.progress
    assert (batch, read[("transactions", "0")]) == (0, 3)

    (log.path / "commits" / "0").unlink()
    assert log.progress == (NO_BATCH, {("transactions", "0"): 1})


def test_a_batch_has_the_settings_that_the_checkpoint_holds_on_to(log):
    assert log.newest.shuffle_partitions == 4
    assert log.newest.conf == {"spark.sql.shuffle.partitions": "4"}
    assert (log.batch(0).watermark_seconds, log.batch(1).watermark_seconds) == (None, 1.5)


def test_the_times_of_a_batch_are_those_of_its_files(log):
    for name, at in (("offsets/0", 10), ("commits/0", 12), ("offsets/1", 20)):
        os.utime(log.path / name, (at, at))
    assert log.times() == [(0, 10.0, 12.0), (1, 20.0, None)]


@pytest.mark.parametrize(
    "text",
    ["", "v1", "v1\nnot json\nnor this", "v1\n[]\n{}", 'v1\n{"conf": 7}', "v1\n" + "[" * 100_000],
    ids=["empty", "version only", "no json", "no settings", "no conf", "deep"],
)
def test_a_damaged_file_has_no_settings_and_no_sources(log, text):
    (log.path / "offsets" / "1").write_text(text)
    assert (log.newest.shuffle_partitions, log.newest.conf, log.newest.ends) == (None, None, {})
    with pytest.raises(KeyError):
        log.newest.watermark_seconds  # noqa: B018


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"id": 3}', "no json", "[" * 100_000])
def test_the_query_id_is_in_the_metadata_and_metadata_without_an_id_is_none(log, text):
    assert log.query_id == "a-b-c"
    put(log.path / "metadata", text)
    assert log.query_id is None
    with pytest.raises((ValueError, RecursionError)):
        parse_query_id(text)


def test_a_folder_that_is_not_there_has_no_batch(tmp_path):
    log = BatchLog(tmp_path / "absent")
    assert (log.planned, log.committed, log.query_id, log.times()) == (frozenset(), frozenset(), None, [])
    assert log.progress == (NO_BATCH, {}) and log.newest == parse_batch("")


def test_a_folder_that_cannot_be_read_is_not_taken_for_empty(log):
    """A start that mistook it for a new checkpoint would write every row a second time."""
    shutil.rmtree(log.path / "offsets")
    (log.path / "offsets").symlink_to(log.path / "offsets")  # a loop
    with pytest.raises(OSError):
        _ = log.planned


def test_compacted_files_of_a_log_count_and_unfinished_ones_do_not(tmp_path):
    for name in ("8", "9.compact", ".10.crc", ".11.tmp", "notes"):
        (tmp_path / name).touch()
    assert {number: file.name for number, file in metadata_log(tmp_path).items()} == {8: "8", 9: "9.compact"}


NAMED = """v2
{"batchWatermarkMs":1500,"batchTimestampMs":1,"conf":{"spark.sql.shuffle.partitions":"4"},"sourceMetadataInfo":{}}
orders:{"transactions":{"0":9,"1":7}}
customers:-
landing:{"logOffset":3}"""


def test_sources_with_names_are_read_from_the_second_version_of_the_log(tmp_path):
    put(tmp_path / "offsets" / "0", NAMED)
    put(tmp_path / "commits" / "0", "v1\n{}")
    log = BatchLog(tmp_path)

    assert log.progress == (0, {("transactions", "0"): 9, ("transactions", "1"): 7})
    assert log.newest.sources[1:] == ("-", '{"logOffset":3}')
    assert (log.newest.watermark_seconds, log.newest.shuffle_partitions) == (1.5, 4)


def test_a_named_source_is_where_it_began_before_the_first_commit(tmp_path):
    put(tmp_path / "offsets" / "0", NAMED)
    put(tmp_path / "sources" / "orders" / "0", '\0v1\n{"transactions":{"0":1}}')
    assert BatchLog(tmp_path).progress == (NO_BATCH, {("transactions", "0"): 1})
