"""A checkpoint's files, as Spark 4.2 writes them."""

import pytest

from ledgerops.checkpoint import resume

OFFSETS = """v1
{"batchWatermarkMs":0,"batchTimestampMs":1,"conf":{"spark.sql.shuffle.partitions":"4"}}
{"transactions":{"0":%d,"1":7}}
-
{"transactions":{"0":5},"customers":{"0":2}}
{"logOffset":3}
"""


@pytest.fixture
def checkpoint(tmp_path):
    """Two batches planned, one committed."""
    for batch, offset in enumerate((3, 9)):
        write(tmp_path / "offsets" / str(batch), OFFSETS % offset)
        (tmp_path / "offsets" / f".{batch}.crc").touch()
    write(tmp_path / "commits" / "0", "v1\n{}")
    write(tmp_path / "sources" / "0" / "0", '\0v1\n{"transactions":{"0":1}}')
    return tmp_path


def write(file, text):
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def test_what_is_planned_and_what_is_committed_are_told_apart(checkpoint):
    assert resume.planned_offsets(checkpoint) == {
        ("transactions", "0"): 5,
        ("transactions", "1"): 7,
        ("customers", "0"): 2,
    }
    batch, read = resume.committed(checkpoint)
    assert (batch, read[("transactions", "0")]) == (0, 3)


def test_before_the_first_commit_a_source_stands_where_it_began(checkpoint):
    (checkpoint / "commits" / "0").unlink()

    assert resume.committed(checkpoint) == (-1, {("transactions", "0"): 1})


def test_the_shuffle_partitions_of_a_checkpoint_are_those_of_its_newest_batch(checkpoint):
    assert resume.shuffle_partitions(checkpoint) == 4


@pytest.mark.parametrize("text", ["", "v1", "v1\nnot json\nnor this", "v1\n[]\n{}", 'v1\n{"conf": 7}'])
def test_a_file_that_cannot_be_understood_says_nothing(checkpoint, text):
    (checkpoint / "offsets" / "1").write_text(text)

    assert resume.shuffle_partitions(checkpoint) is None
    assert resume.planned_offsets(checkpoint) == {}


def test_only_a_checkpoint_without_a_batch_is_forgotten(checkpoint, tmp_path):
    resume.forget_unused(checkpoint)
    assert resume.planned(checkpoint)

    write(tmp_path / "new" / "sources" / "0" / "0", "v1\n{}")
    resume.forget_unused(tmp_path / "new")
    resume.forget_unused(tmp_path / "none")
    assert not (tmp_path / "new").exists()
