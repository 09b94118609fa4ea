"""Files of this machine through the Hadoop of a real session, and what is said of those that cannot be read."""

import os
from types import SimpleNamespace

import pytest

from ledgerops.agent.file_sink import ENTRY
from ledgerops.agent.hadoop_files import FileError, HadoopFiles
from tests.build import T0
from tests.tables import cases


@pytest.fixture
def files(spark):
    return HadoopFiles(SimpleNamespace(spark=spark))


def test_a_file_has_a_size_and_a_time_and_can_be_read_in_part(files, tmp_path):
    file = tmp_path / "a b.json"
    file.write_bytes(b"\x00\xff" + b"x" * 98)
    os.utime(file, (T0, T0))

    for path in (str(file), f"file:{file}"):
        assert files.exists(path)
        assert files.status(path) == (100, T0)
        assert files.read(path, 5) == b"\x00\xffxxx"
        assert len(files.read(path, 1000)) == 100
        assert files.find(path, 5) == files.read(path, 5)


def test_a_file_that_is_not_there_has_no_status_and_neither_it_nor_a_folder_can_be_read(files, tmp_path):
    absent = str(tmp_path / "absent")
    assert (files.exists(absent), files.status(absent), files.find(absent, 5)) == (False, None, None)
    with pytest.raises(FileError, match="FileNotFoundException"):
        files.read(absent, 5)
    assert files.status(str(tmp_path)) is not None
    with pytest.raises(FileError):
        files.read(str(tmp_path), 5)


def test_the_names_in_a_folder_are_one_text_which_is_empty_without_a_folder(files, tmp_path):
    folder = tmp_path / "_spark_metadata"
    assert files.listing(str(folder)) == ""
    folder.mkdir()
    for name in ("9.compact", "10", "11"):
        (folder / name).touch()
    assert sorted(ENTRY.findall(files.listing(str(folder)))) == ["10", "11"]


@cases(
    "path, reason",
    ("a scheme without file system", "nosuch://table/x", "No FileSystem for scheme"),
    ("no path", "", "IllegalArgumentException"),
)
def test_the_reason_is_one_line(files, path, reason):
    with pytest.raises(FileError, match=reason):
        files.exists(path)
    with pytest.raises(FileError, match=reason) as error:
        files.status(path)
    assert "\n" not in str(error.value) and len(str(error.value)) <= 200


def test_a_platform_that_forbids_py4j_is_an_error_of_the_file():
    class Forbidden:
        def __getattr__(self, name):
            raise RuntimeError("[JVM_ATTRIBUTE_NOT_SUPPORTED] not here")

    with pytest.raises(FileError, match=r"^RuntimeError: \[JVM_ATTRIBUTE_NOT_SUPPORTED\] not here$"):
        HadoopFiles(SimpleNamespace(spark=Forbidden())).status("/t")


class Java8Stream:
    """An InputStream with the methods that Java 8 has: `readNBytes` came with Java 9 and 11."""

    def __init__(self, content):
        self.content, self.open = content, True

    def read(self, limit):
        return self.content[:limit]

    def close(self):
        self.open = False


def test_a_file_is_read_by_what_java_8_has_and_closed():
    stream = Java8Stream(b"0123456789")
    system = SimpleNamespace(open=lambda place: stream, exists=lambda place: True)
    io = SimpleNamespace(
        input=SimpleNamespace(BoundedInputStream=lambda stream, limit: stream.read(limit)),
        IOUtils=SimpleNamespace(toByteArray=bytes),
    )
    path = SimpleNamespace(getFileSystem=lambda conf: system)
    hadoop = SimpleNamespace(fs=SimpleNamespace(Path=lambda text: path))
    apache = SimpleNamespace(hadoop=hadoop, commons=SimpleNamespace(io=io))
    spark = SimpleNamespace(
        sparkContext=SimpleNamespace(_jvm=SimpleNamespace(org=SimpleNamespace(apache=apache))),
        _jsparkSession=SimpleNamespace(sessionState=lambda: SimpleNamespace(newHadoopConf=lambda: None)),
    )
    assert HadoopFiles(SimpleNamespace(spark=spark)).read("/t", 4) == b"0123"
    assert not stream.open
