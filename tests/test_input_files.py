from pathlib import Path

import pytest

from ledgerops.input_files import local_path


def test_a_file_of_this_machine_has_a_local_path():
    assert local_path("file:/data/x") == Path("/data/x")
    assert local_path("file:///data/a%20b") == Path("/data/a b")


@pytest.mark.parametrize("uri", ["hdfs://name:9000/x", "s3a://bucket/x", "file://host/x", "/data/x", ""])
def test_any_other_file_has_none(uri):
    assert local_path(uri) is None
