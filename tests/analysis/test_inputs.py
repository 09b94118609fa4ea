"""What a place is: a recording or an event log, plain or packed."""

import shutil
import socket
import threading

import pytest
import zstandard

from ledgerops.analysis.inputs import open_source
from ledgerops.errors import UserError
from tests.analysis.test_event_log import ROLLING
from tests.paths import RECORDED
from tests.tables import cases

PLAIN = RECORDED / "key-skew.jsonl"


def packed(plain, target):
    target.write_bytes(zstandard.compress(plain.read_bytes()))
    return target


def seen(place):
    return list(open_source(str(place)).observations)


def test_a_packed_recording_reads_as_the_plain_one(tmp_path):
    assert seen(packed(PLAIN, tmp_path / "x.jsonl.zst")) == seen(PLAIN)


def test_a_folder_may_hold_packed_and_plain_segments(tmp_path):
    lines = PLAIN.read_bytes().splitlines(keepends=True)
    first, second = tmp_path / "first", tmp_path / "recording-000002.jsonl"
    first.write_bytes(b"".join(lines[:9]))
    packed(first, tmp_path / "recording-000001.jsonl.zst")
    second.write_bytes(b"".join(lines[9:]))

    assert seen(tmp_path) == seen(PLAIN)


def test_a_segment_that_is_there_plain_and_packed_is_read_once(tmp_path):
    shutil.copy(PLAIN, tmp_path / "recording-000001.jsonl")
    packed(PLAIN, tmp_path / "recording-000001.jsonl.zst")
    assert seen(tmp_path) == seen(PLAIN)


def test_a_folder_of_packed_recordings_of_other_names_is_read_by_name(tmp_path):
    packed(PLAIN, tmp_path / "b.jsonl.zst")
    shutil.copy(RECORDED / "source-unreachable.jsonl", tmp_path / "a.jsonl")
    assert seen(tmp_path) == seen(RECORDED / "source-unreachable.jsonl") + seen(PLAIN)


def test_a_folder_with_a_recording_a_level_down_names_it(tmp_path):
    inner = tmp_path / "recording"
    inner.mkdir()
    shutil.copy(PLAIN, inner / "recording-000001.jsonl")
    with pytest.raises(UserError, match=f"; give {inner}$"):
        seen(tmp_path)


def test_the_recording_of_another_application_in_the_folder_is_named(tmp_path, capsys):
    for folder in (tmp_path, tmp_path / "application-2"):
        folder.mkdir(exist_ok=True)
        shutil.copy(PLAIN, folder / "recording-000001.jsonl")
    assert seen(tmp_path) == seen(PLAIN)
    assert f"diagnose {tmp_path / 'application-2'}" in capsys.readouterr().err
    seen(tmp_path / "application-2")
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("compacted", [True, False])
def test_a_log_that_was_compacted_is_told(tmp_path, capsys, compacted):
    folder = shutil.copytree(ROLLING, tmp_path / ROLLING.name)
    if compacted:
        first = min(folder.glob("events_*"))
        first.rename(first.with_name(f"{first.name}.compact"))
    seen(folder)
    assert ("neither tasks nor lost executors" in capsys.readouterr().err) is compacted


def test_an_empty_file_is_not_a_job_without_queries(tmp_path):
    (tmp_path / "a").touch()
    with pytest.raises(UserError, match="it is empty"):
        seen(tmp_path / "a")


def test_a_packed_event_log_is_still_an_event_log(tmp_path):
    log = RECORDED / "eventlog" / "local-2"
    assert seen(packed(log, tmp_path / "local-2.zstd")) == seen(log)


def test_what_was_written_before_a_packed_recording_was_torn_is_read(tmp_path):
    whole = zstandard.ZstdCompressor().compressobj()
    lines = PLAIN.read_bytes().splitlines(keepends=True)
    there = whole.compress(b"".join(lines[:5])) + whole.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK)
    (tmp_path / "x.jsonl.zst").write_bytes(there)

    assert seen(tmp_path / "x.jsonl.zst") == seen(PLAIN)[:5]


@cases(
    "content, reason",
    (
        "damaged",
        b"\x28\xb5\x2f\xfdrubbish, not a frame",
        ": not zstd, or damaged (zstd decompress error: dictionary mismatch)",
    ),
    ("plain", b"rubbish\n", ": not zstd, or damaged"),
)
def test_what_is_not_zstd_is_refused_in_one_line(tmp_path, content, reason):
    path = tmp_path / "x.jsonl.zst"
    path.write_bytes(content)

    with pytest.raises(UserError) as refused:
        seen(path)
    assert str(refused.value) == f"cannot read {path}{reason}"


def test_a_server_that_has_no_clock_is_no_traceback():
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve():
            connection, _ = server.accept()
            with connection:
                connection.recv(65_536)
                connection.sendall(b"HTTP/1.1 200 OK\r\nDate: Mon, 01 Jan 2024 00:00:00 +99999999999999999999\r\n\r\n")

        thread = threading.Thread(target=serve)
        thread.start()
        assert open_source(f"http://127.0.0.1:{server.getsockname()[1]}").now is None
        thread.join(10)
