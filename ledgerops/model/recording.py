"""The recording: JSON lines, one observation a line, with `at`, `kind`, `query` and `data`.

A recording is a folder of segments, `recording-000001.jsonl` and so on. The newest is appended to; when it is full
the next begins, and the oldest go when the total is above its bound. A file that is kept may be packed with zstd
(`.jsonl.zst`, a tenth of the size) and is read as it is.
"""

import json
import os
import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from io import FileIO
from itertools import accumulate, islice
from math import isinf
from pathlib import Path
from typing import Any

import orjson

from ledgerops.common.bounded_lines import Head, numbered_lines
from ledgerops.errors import UserError
from ledgerops.model.offsets import MAX_DIGITS
from ledgerops.model.records import KINDS, Observation, ObservationKind, unread
from ledgerops.model.spark_progress import format_instant, parse_instant

SEGMENT = re.compile(r"recording-(\d{6,})\.jsonl(?:\.zst)?")
BEGIN = re.compile(rb'\s*\{\s*"')  # of a line
PLAIN, PACKED = ".jsonl", ".jsonl.zst"
SEGMENT_BYTES = 16 * 1024 * 1024  # about three hours of one query at a batch every 2 s
MAX_BAD_LINES = 10  # at the beginning of what may still be a recording: one that was cut with `tail -c` has one
TOTAL_BYTES = 256 * 1024 * 1024
PART_BYTES = 256 * 1024  # that are written at once: what a nearly full disk has room for is not lost
MIN_SEGMENTS = 4  # of a recording: the oldest goes as a whole


def encode(at: float, kind: ObservationKind, query: str | None, data: bytes) -> bytes:
    """One line with its newline. `data` is JSON text and goes in untouched: a progress record stays Spark's own."""
    head = orjson.dumps({"at": format_instant(at), "kind": kind, "query": query})
    return b'%s,"data":%s}\n' % (head[:-1], data.strip().replace(b"\n", b" "))


def decode(line: bytes | str) -> Observation:
    """One line. Raises ValueError that says what is missing."""
    value = load_json(line)
    if not isinstance(value, dict) or "kind" not in value:
        raise ValueError("no kind")
    at, kind, data = parse_instant(value.get("at")), value["kind"], value.get("data")
    if at is None:
        raise ValueError("no time in at")
    if kind not in KINDS:
        raise ValueError(f"unknown kind {kind!r:.40}")
    if not isinstance(data, dict):
        raise ValueError("no data")
    query = value.get("query")
    return Observation(at, kind, query if isinstance(query, str) else None, data)


def load_json(text: bytes | str) -> Any:
    """What JSON text holds; every string in it can be encoded. Raises ValueError when it is none. Also taken: the NaN
    and Infinity that Spark writes, and halves of surrogate pairs, which become `?`."""
    try:
        return orjson.loads(text)
    except ValueError:
        try:
            return _encodable(json.loads(text, parse_int=_whole, parse_float=_finite))
        except RecursionError:
            raise ValueError("no valid JSON: nested too deeply") from None


def _whole(text: str) -> float:
    """A whole number; one that is longer than 64 bits as a float, which calculations can take."""
    return int(text) if len(text) <= MAX_DIGITS else _finite(text)


def _finite(text: str) -> float:
    value = float(text)
    if isinf(value):
        raise ValueError("no valid JSON: a number that is too large")
    return value


def _encodable(value: Any) -> Any:
    """With strings that can be encoded: one lone surrogate in a name would fail the pages of all queries."""
    if isinstance(value, str):
        return value if value.isascii() else value.encode("utf-8", "replace").decode("utf-8")
    if isinstance(value, dict):
        return {_encodable(key): _encodable(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_encodable(each) for each in value]
    return value


def read(path: Path | str) -> Iterator[Observation]:
    """All observations of a recording file, or of a folder of segments in order. A torn last line (the writer was
    killed) is passed over, a damaged one elsewhere told as unread. Raises UserError for what is no recording."""
    path = Path(path)
    if path.is_dir():
        segments = _segments(path) or sorted(each for each in path.iterdir() if each.name.endswith((PLAIN, PACKED)))
        if not segments:
            inner = _below(path)
            hint = f"; give {inner[-1]}" if inner else ""
            raise UserError(
                f"no recording in {path}: expected files named recording-*.jsonl, or Spark's events_*{hint}"
            )
        for segment in segments:
            try:
                yield from _read_file(segment)
            except UserError:
                if segment.exists():  # else its writer has trimmed it meanwhile
                    raise
    else:
        yield from _read_file(path)


def others_in(folder: Path) -> list[Path]:
    """The recordings of other applications in the folder of a recording, which is read without them."""
    return _below(folder) if folder.is_dir() and _segments(folder) else []


def _below(folder: Path) -> list[Path]:
    """The recordings a level down, but for those in folders that this user may not read."""
    return sorted({each.parent for each in folder.glob("*/recording-*.jsonl*")})


def is_packed(path: Path) -> bool:
    """Whether a file is, by its name, a recording in zstd; Spark's event logs are in zstd, too, under other names."""
    return path.name.endswith(PACKED)


def read_lines(lines: Iterable[bytes], name: str) -> Iterator[Observation]:
    """Observations from lines; `name` is what an error calls them."""
    return _decoded(((number, line) for number, line in enumerate(lines, 1) if line.strip()), name)


def _read_file(path: Path) -> Iterator[Observation]:
    return _decoded(numbered_lines(path, BEGIN.match), str(path))


def _decoded(lines: Iterable[tuple[int, bytes]], name: str) -> Iterator[Observation]:
    """Observations from numbered lines; one that is damaged, among good ones, is told as unread. Raises UserError that
    names the first where the file begins with MAX_BAD_LINES of them, or has no other."""
    first: tuple[int, str] | None = None  # bad line, and why
    bad, at = 0, None
    for number, line in lines:
        try:
            seen = unread(at or 0.0) if isinstance(line, Head) else decode(line)
        except ValueError as error:
            if not line.endswith(b"\n"):
                break  # torn: its writer was killed, or writes it now
            reason = str(error) if "no " in str(error) or "unknown" in str(error) else "not JSON"
            first, bad = first or (number, reason), bad + 1
            if at is None and bad == MAX_BAD_LINES:
                break
            continue
        at = seen.at
        yield from [unread(at)] * bad
        bad = 0
        yield seen
    if at is not None:
        yield from [unread(at)] * bad
    elif first is not None:
        raise UserError(
            f"cannot read {name}:{first[0]}: not a recording line ({first[1]}); is it a recording or a Spark event log?"
        )


def _segments(folder: Path) -> list[Path]:
    """The segments in order; of one that is there plain and packed, the plain one."""
    names = sorted((path.name for path in folder.iterdir()), reverse=True)  # packed before plain: the latter stays
    found = {int(match[1]): folder / name for name in names if (match := SEGMENT.fullmatch(name))}
    return [path for _, path in sorted(found.items())]


class Recorder:
    """Appends lines to the newest segment of a folder. Not thread-safe: one writer owns it. Raises OSError as the file
    system does; the caller counts and goes on without. Each new segment begins with what `head` gives for its first
    line: the segments before it may be deleted."""

    head: Callable[[bytes], bytes] = staticmethod(lambda first: b"")

    def __init__(self, folder: Path, segment_bytes: int = SEGMENT_BYTES, total_bytes: int = TOTAL_BYTES) -> None:
        self.folder = folder
        self.segment_bytes = min(segment_bytes, max(1, total_bytes // MIN_SEGMENTS))
        self.total_bytes = total_bytes
        self._file: FileIO | None = None
        self._path = folder
        self._size = 0

    def write(self, lines: deque[bytes]) -> bool:
        """Hands lines, each with its newline, to the operating system, without a sync to disk, and takes from `lines`
        what it has written. Begins a new segment when the present one is full, or was deleted or moved: then it returns
        True, and nothing of `lines` is lost."""
        renewed = False
        while lines:
            if self._file is None or self._size + len(lines[0]) > self.segment_bytes:
                self._next_segment()
            room = min(PART_BYTES, self.segment_bytes - self._size)
            fitting = sum(end <= room for end in accumulate(map(len, lines))) or 1
            part = b"".join(islice(lines, fitting))
            self._append(part)
            if not _is_same(self._path, self._file):
                renewed = True
                self._next_segment()
                self._append(part)
            for _ in range(fitting):
                lines.popleft()
        return renewed

    def close(self) -> None:
        """Closes the segment; a later `write` begins a new one. May be called twice."""
        if self._file is not None:
            try:
                self._file.close()
            finally:
                self._file = None

    def _append(self, text: bytes) -> None:
        """All of the text, after the head in a new segment, or, where the disk is full, nothing."""
        assert self._file is not None
        end = self._file.seek(0, os.SEEK_END)
        # the head is no part of the size: a small segment with many plans would be full at once
        rest = memoryview(text if self._size else self.head(text) + text)
        try:
            while rest:
                rest = rest[self._file.write(rest) :]
        except OSError:
            self._file.truncate(end)
            raise
        self._size += len(text)

    def _next_segment(self) -> None:
        """A new segment each time: a torn line of an earlier process stays the last of its file. An empty one is taken
        again: a disk that stays full would get another at each try."""
        self.close()
        self.folder.mkdir(parents=True, exist_ok=True)
        segments = _segments(self.folder)
        number = int(SEGMENT.fullmatch(segments[-1].name)[1]) if segments else 0  # type: ignore[index]
        if not segments or _size(segments[-1]):
            number += 1
        self._path = self.folder / f"recording-{number:06}.jsonl"
        self._file = _open_private(self._path)
        self._size = 0
        sizes = {segment: _size(segment) for segment in segments}
        total = sum(sizes.values())
        for segment, size in sizes.items():
            if total + self.segment_bytes <= self.total_bytes:
                break
            total -= size
            segment.unlink(missing_ok=True)


def _size(file: Path) -> int:
    """In bytes; 0 for a file that has been deleted meanwhile."""
    try:
        return file.stat().st_size
    except FileNotFoundError:
        return 0


def _is_same(path: Path, file: FileIO | None) -> bool:
    """Whether the path still leads to the open file."""
    try:
        return file is not None and os.path.samestat(path.stat(), os.fstat(file.fileno()))
    except FileNotFoundError:
        return False


def _open_private(file: Path) -> FileIO:
    """Opens a file to append to that its owner alone may read. Raises OSError, also where it is a symbolic link."""
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0)
    return FileIO(os.open(file, flags, 0o600), "ab")
