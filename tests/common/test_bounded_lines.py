"""Lines of files that are damaged or hostile: every reader of recordings and event logs goes through these bounds."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import zstandard

from ledgerops.common import bounded_lines
from ledgerops.common.bounded_lines import CHUNK_BYTES, HEAD_BYTES, MAX_LINE_BYTES, Head, numbered_lines
from ledgerops.errors import UserError
from tests.paths import RECORDED
from tests.refusals import refusal_of
from tests.tables import cases

MIB = 1024 * 1024
MEMORY_BYTES = 300 * MIB
SECONDS = 60  # a busy machine needs a few; what is not bounded needs minutes or never ends
RECORD = b'{"at":"2027-01-15T08:00:00Z","kind":"idle","query":"q","data":{"runId":"r"}}\n'
EVENT = b'{"Event":"SparkListenerLogStart","Spark Version":"4.2.0"}\n'


def packed(path, *pieces):
    """A zstd file of (text, times) pieces."""
    compressor = zstandard.ZstdCompressor().compressobj()
    with path.open("wb") as file:
        for text, times in pieces:
            for _ in range(times):
                file.write(compressor.compress(text))
        file.write(compressor.flush())
    return path


@pytest.fixture(params=["plain", "zstd"])
def written(request, tmp_path):
    def write(content):
        path = tmp_path / "file"
        if request.param == "zstd":
            return packed(path, (content, 1))
        path.write_bytes(content)
        return path

    return write


LONG, CHUNK, LONGEST = (b"x" * count + b"\n" for count in (CHUNK_BYTES + 7, CHUNK_BYTES - 1, MAX_LINE_BYTES))


@cases(
    "content, lines",
    ("empty", b"", []),
    ("blank", b"\n \n\t\n", []),
    ("numbers", b"a\n\n b \nc", [(1, b"a\n"), (3, b" b \n"), (4, b"c")]),
    ("blank chunks", b"\n" * (2 * CHUNK_BYTES + 5) + b"a\n", [(2 * CHUNK_BYTES + 6, b"a\n")]),
    ("over a chunk", LONG + b"b\n", [(1, LONG), (2, b"b\n")]),
    ("ends with a chunk", CHUNK + b"b\n", [(1, CHUNK), (2, b"b\n")]),
    ("longest", LONGEST, [(1, LONGEST)]),
)
def test_lines_that_are_not_blank_come_with_their_numbers(written, content, lines):
    assert list(numbered_lines(written(content))) == lines


@pytest.mark.parametrize("extra", [1, 3 * CHUNK_BYTES])
def test_a_line_that_is_too_long_is_named(written, extra):
    path = written(b"a\n" + b"x" * (MAX_LINE_BYTES + extra) + b"\nb\n")
    assert refusal_of(list, numbered_lines(path)) == f"cannot read {path}:2: a line of more than 8 MiB"


@pytest.mark.parametrize("extra", [1, 3 * CHUNK_BYTES])
def test_of_a_long_line_that_begins_as_a_known_one_the_head_comes(written, extra):
    path = written(b"a\n" + b"x" * (MAX_LINE_BYTES + extra) + b"\nb\n")
    first, long, last = numbered_lines(path, lambda head: head.startswith(b"xxx"))
    assert (first, long, last) == ((1, b"a\n"), (2, b"x" * HEAD_BYTES), (3, b"b\n"))
    assert [isinstance(line, Head) for _, line in (first, long, last)] == [False, True, False]


def test_a_known_line_without_end_is_refused(written, monkeypatch):
    monkeypatch.setattr(bounded_lines, "MAX_PASSED_BYTES", 10 * MIB)
    path = written(b"a\n" + b"x" * (12 * MIB) + b"\nb\n")
    with pytest.raises(UserError, match=r":2: a line of more than 10 MiB$"):
        list(numbered_lines(path, lambda head: True))


def test_a_file_that_is_still_written_is_read_as_far_as_it_goes(tmp_path):
    path = packed(tmp_path / "file", *((b"line %d\n" % number, 1) for number in range(100_000)))
    path.write_bytes(path.read_bytes()[:-200])
    assert len(list(numbered_lines(path))) > 50_000


def test_repetitive_files_are_read_whole(tmp_path):
    path = packed(tmp_path / "file", (RECORD, 100_000))  # 8 MB in a few hundred bytes
    assert sum(1 for _ in numbered_lines(path)) == 100_000


def test_a_frame_that_wants_much_memory_is_refused(tmp_path):
    parameters = zstandard.ZstdCompressionParameters(window_log=27)
    path = tmp_path / "file"
    with zstandard.ZstdCompressor(compression_params=parameters).stream_writer(path.open("wb")) as file:
        file.write(RECORD)

    with pytest.raises(UserError, match="requires too much memory"):
        list(numbered_lines(path))


@pytest.mark.parametrize("name", ["fifo", "folder", "/dev/zero", "dangling"])
def test_only_regular_files_are_opened(tmp_path, name):
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "folder").mkdir()
    (tmp_path / "dangling").symlink_to(tmp_path / "absent")

    with pytest.raises(UserError, match=r"cannot read \S+: (not a regular file|no such file or directory)$"):
        list(numbered_lines(tmp_path / name))
    assert bounded_lines.read_head(tmp_path / name, 10) == b""


IN_LITTLE_MEMORY = """
import contextlib, io, json, resource, sys
resource.setrlimit(resource.RLIMIT_AS, 2 * (int(sys.argv[1]),))
from ledgerops.cli import main
found = []
for path in sys.argv[2:]:
    with contextlib.redirect_stderr(io.StringIO()) as errors, contextlib.redirect_stdout(io.StringIO()):
        code = main(["diagnose", "--from", path, "--fail-on", "critical"])
    lines = errors.getvalue().splitlines() or [""]
    found.append((code, lines[0], len(lines)))
print(json.dumps(found))
"""


def in_little_memory(*paths):
    """(exit code, first line of stderr, number of lines) of `ledgerops diagnose` on files, under a limit of memory."""
    command = [sys.executable, "-c", IN_LITTLE_MEMORY, str(MEMORY_BYTES), *map(str, paths)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=True)
    return json.loads(done.stdout)


DIAGNOSED = ("deeper.jsonl", "lists.jsonl")  # a good line is left that tells of a query


def bombs(folder):
    """(file, what is said of it)"""
    deep = b'{"at":' + b"[" * 500_000 + b"]" * 500_000 + b"}\n"
    shallow = b'{"a":' * 900 + b"1" + b"}" * 900  # as deep as JSON may be
    plain = {
        "deep.jsonl": (deep, ":1: not a recording line (no valid JSON: nested too deeply)"),
        "deeper.jsonl": (deep + RECORD, ": skipped 1 record of "),
        "deep-log": (EVENT + deep + EVENT, ": skipped 1 record of "),
        "just-deep.jsonl": (RECORD.replace(b'{"runId":"r"}', shallow), ": skipped 1 record of "),
        "long.jsonl": (b'{"at":"' + b"x" * (20 * MIB), ": skipped 1 record of "),
        "long-log": (EVENT + b'{"Event":"SparkListenerTaskEnd","x":"' + b"x" * (20 * MIB), ": skipped 1 record of "),
        "other.jsonl": (RECORD + b"x" * (20 * MIB), ":2: a line of more than 8 MiB"),
        "other-log": (EVENT + b"x" * (20 * MIB), ":2: a line of more than 8 MiB"),
        "lists.jsonl": (b"[" + b"[]," * (2 * MIB) + b"[]]\n" + RECORD, ": skipped 1 record of "),
        "numbers.jsonl": (b'{"at":' + b"9" * (7 * MIB) + b"}\n", ":1: not a recording line (no valid"),
        "newlines.jsonl": (b"\n" * (64 * MIB), ": no streaming query in "),
        "newlines-log": (EVENT + b"\n" * (64 * MIB), ": no streaming query in "),
    }
    for name, (content, said) in plain.items():
        (folder / name).write_bytes(content)
        yield folder / name, said
    ratio = "it decompresses to more than 1000 times its size"
    yield packed(folder / "newlines.jsonl.zst", (b"\n" * MIB, 2000)), ratio
    yield packed(folder / "events.zstd", (EVENT, 1), (b"\n" * MIB, 2000)), ratio
    yield packed(folder / "spaces.jsonl.zst", (b" " * MIB, 2000)), "cannot read"
    yield packed(folder / "records.jsonl.zst", (RECORD, 1), (b"x" * MIB, 2000)), ":2: a line of more than 8 MiB"
    for name, begin, most in (("sparse.jsonl", b"", "8 MiB"), ("endless.jsonl", b'{"at":"', "2048 MiB")):
        (folder / name).write_bytes(begin)
        os.truncate(folder / name, 1024**4)
        yield folder / name, f":1: a line of more than {most}"
    os.mkfifo(folder / "fifo")
    (folder / "run" / "recording-000001.jsonl.zst").mkdir(parents=True)
    yield from ((path, "not a regular file") for path in (folder / "fifo", "/dev/zero", folder / "run"))


def test_no_file_takes_much_memory_or_time_and_each_is_refused_in_one_line(tmp_path):
    paths, expected = zip(*bombs(tmp_path), strict=True)
    wrong = {
        str(path): (code, line[-300:], lines)
        for path, said, (code, line, lines) in zip(paths, expected, in_little_memory(*paths), strict=True)
        if code != (0 if Path(path).name in DIAGNOSED else 2)
        or lines > 1 + ("1 record of" in said)
        or said not in line.replace("ledgerops: ", ": ", 1)
    }

    assert wrong == {}


def test_a_stage_of_many_tasks_is_read_in_little_memory(tmp_path):
    """A hundred thousand tasks: their events are 300 MB of Python objects."""
    source = (RECORDED / "eventlog" / "local-2").read_bytes().splitlines(keepends=True)
    tasks = [number for number, line in enumerate(source) if b'{"Event":"SparkListenerTaskEnd"' in line]
    path = tmp_path / "local-3"
    with path.open("wb") as file:
        for number, line in enumerate(source):
            for _ in range(100_000 if number == tasks[0] else 1):
                file.write(line)

    [(code, _, _)] = in_little_memory(path)
    assert code in (0, 1)
