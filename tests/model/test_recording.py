"""The recording: append, read, rotate; torn and bad lines."""

import json
import re
import resource
import shutil
from collections import deque
from contextlib import contextmanager

import pytest

from ledgerops.errors import UserError
from ledgerops.model.recording import Recorder, decode, encode, load_json, read
from ledgerops.model.records import unread
from tests.build import T0, spark_json
from tests.tables import cases


def _line(number):
    return encode(T0 + number, "progress", "q", json.dumps({"batchId": number}).encode())


def _lines(*numbers):
    return deque(map(_line, numbers))


def _write(folder, count, **limits):
    recorder = Recorder(folder, **limits)
    for number in range(count):
        recorder.write(_lines(number))
    recorder.close()


def test_a_line_has_the_form_of_the_contract_and_holds_sparks_json_untouched():
    line = json.loads(encode(T0, "idle", None, b'{"runId": "r"}'))
    assert line == {"at": "2027-01-15T08:00:00.000Z", "kind": "idle", "query": None, "data": {"runId": "r"}}
    text = json.dumps(spark_json(), separators=(" ,  ", " : ")).encode()
    assert text in encode(T0, "progress", "q", text)


def test_segments_rotate_and_the_oldest_go(tmp_path):
    _write(tmp_path, 200, segment_bytes=1000, total_bytes=4000)
    segments = sorted(tmp_path.glob("recording-*.jsonl"))
    assert sum(segment.stat().st_size for segment in segments) <= 4000
    batches = [each.data["batchId"] for each in read(tmp_path)]
    assert batches == list(range(batches[0], 200))
    assert batches[0] > 0


def test_a_recording_that_may_be_small_keeps_most_of_what_it_may(tmp_path):
    _write(tmp_path, 200, segment_bytes=16_000_000, total_bytes=4000)
    assert 2000 < sum(segment.stat().st_size for segment in tmp_path.iterdir()) <= 4000


def test_each_writer_begins_a_segment_so_a_torn_line_stays_the_last_of_its_file(tmp_path):
    _write(tmp_path, 2)
    with (tmp_path / "recording-000001.jsonl").open("ab") as torn:
        torn.write(b'{"at": "2027-01-15T08:00:0')
    _write(tmp_path, 2)
    assert [each.data["batchId"] for each in read(tmp_path)] == [0, 1, 0, 1]


@cases(
    "text, bad",
    ("one in the middle", _line(0) + b'{"kind": "progress"}\n' + _line(1), 1),
    ("the first, of a file cut by bytes", b'ta":{"batchId":7}}\n' + _line(0) + _line(1), 1),
    ("all after some", _line(0) + _line(1) + b"hello\n" * 20, 20),
    ("a torn last one", _line(0) + _line(1) + b'{"at": "2027', 0),
    ("blank ones", _line(0) + b"\n\n" + _line(1), 0),
)
def test_a_damaged_line_is_counted_and_loses_no_other(tmp_path, text, bad):
    path = tmp_path / "cut.jsonl"
    path.write_bytes(text)
    seen = list(read(path))
    assert [each.data["batchId"] for each in seen if each.kind == "progress"] == [0, 1]
    assert sum(each.data == unread(T0).data for each in seen) == bad


@cases(
    "text, message",
    ("no JSON", b"hello\n", ":1: not a recording line (not JSON)"),
    ("no record", b"\n{}\nhello\n", ":2: not a recording line (no kind)"),
    ("one far below", b"hello\n" * 10 + _line(0), ":1: not a recording line (not JSON)"),
)
def test_what_is_no_recording_is_refused_by_its_first_line(tmp_path, text, message):
    path = tmp_path / "other.jsonl"
    path.write_bytes(text)
    with pytest.raises(UserError, match=re.escape(f"cannot read {path}{message}; is it a recording")):
        list(read(path))


@pytest.mark.parametrize(
    ("name", "message"),
    [("absent.jsonl", "cannot read .*absent.jsonl: no such file or directory"), (".", "no recording in ")],
)
def test_nothing_to_read_is_said_in_one_line(tmp_path, name, message):
    with pytest.raises(UserError, match=message):
        list(read(tmp_path / name))


def test_a_disk_that_stays_full_gets_one_empty_file_and_not_one_at_each_try(tmp_path):
    recorder, lines = Recorder(tmp_path), deque([b"{}\n"])
    with _limited(0):
        for _ in range(5):
            with pytest.raises(OSError, match="File too large"):
                recorder.write(lines)
            recorder.close()
    recorder.write(lines)
    recorder.close()
    assert [(each.name, each.read_bytes()) for each in tmp_path.iterdir()] == [("recording-000001.jsonl", b"{}\n")]


def test_lines_for_which_a_disk_has_no_room_are_written_once_and_whole_when_it_has(tmp_path):
    recorder, lines = Recorder(tmp_path), _lines(0, 1, 2, 3)
    recorder.head = lambda first: b"{}\n"
    for _ in range(3):
        with _limited(2 * len(_line(0)) + 10), pytest.raises(OSError, match="File too large"):
            recorder.write(lines)
        recorder.close()
    assert [file.read_bytes() for file in tmp_path.iterdir()] == [b""]
    recorder.head = Recorder.head
    recorder.write(lines)
    recorder.close()
    assert [each.data["batchId"] for each in read(tmp_path)] == [0, 1, 2, 3]


@contextmanager
def _limited(size):
    """No file of this process may become larger than so many bytes."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_only_the_owner_may_read_a_recording(tmp_path):
    _write(tmp_path / "new", 1)
    [file] = (tmp_path / "new").iterdir()
    assert file.stat().st_mode & 0o777 == 0o600


def test_a_link_that_waits_where_the_next_segment_goes_is_not_followed(tmp_path):
    victim, link = tmp_path / "victim", tmp_path / "new" / "recording-000001.jsonl"
    victim.write_text("")
    link.parent.mkdir()
    link.symlink_to(victim)
    with pytest.raises(OSError):
        Recorder(link.parent).write(deque([b"{}\n"]))
    assert victim.read_text() == ""


def test_a_reader_does_not_fail_where_the_writer_trims_meanwhile(tmp_path):
    _write(tmp_path, 50, segment_bytes=1000)
    reading = read(tmp_path)
    numbers = [next(reading).data["batchId"]]
    for segment in sorted(tmp_path.iterdir())[:-1]:
        segment.unlink()
    numbers += [each.data["batchId"] for each in reading]
    assert (numbers[0], numbers[-1]) == (0, 49)


def test_a_writer_goes_on_where_somebody_deletes_old_segments(tmp_path):
    recorder = Recorder(tmp_path, segment_bytes=1000, total_bytes=4000)
    for number in range(100):
        recorder.write(_lines(number))
        for old in sorted(tmp_path.iterdir())[:-1]:
            old.unlink()
    recorder.close()
    assert [each.data["batchId"] for each in read(tmp_path)][-1] == 99


@pytest.mark.parametrize("moved", [False, True], ids=["deleted", "moved away"])
def test_a_segment_that_is_gone_is_begun_anew_without_a_gap(tmp_path, moved):
    folder = tmp_path / "recording"
    recorder = Recorder(folder)
    assert recorder.write(_lines(0)) is False
    folder.rename(tmp_path / "elsewhere") if moved else shutil.rmtree(folder)
    assert recorder.write(_lines(1, 2)) is True
    assert recorder.write(_lines(3)) is False
    recorder.close()
    assert [each.data["batchId"] for each in read(folder)] == [1, 2, 3]


def test_a_number_is_one_that_calculations_can_take():
    assert load_json(f'{{"a": {"9" * 100}, "b": 12}}') == {"a": 1e100, "b": 12}
    line = b'{"at": "2027-01-15T08:00:00Z", "kind": "progress", "query": "q", "data": {"x": NaN}}'
    assert decode(line).query == "q", "numbers that JSON does not know are read"


@pytest.mark.parametrize("number", ["9" * 400, "9" * 5000, "1e400", "-1e400"])
def test_a_number_beyond_all_bounds_is_no_json(number):
    with pytest.raises(ValueError, match="a number that is too large"):
        load_json(f'{{"a": {number}}}')
