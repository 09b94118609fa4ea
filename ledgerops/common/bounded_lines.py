"""Lines of a file that may be damaged or hostile, plain or zstd, in bounded memory and time.

Only regular files are opened. A line has a largest length, and a zstd file a largest size when it is decompressed.
"""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Protocol

from ledgerops.errors import UserError, cannot_read
from ledgerops.input_files import open_regular

MAX_LINE_BYTES = 8 * 1024 * 1024  # plans of thousands of columns are a tenth of it; only one that grows is longer
MAX_ZSTD_RATIO = 1000  # decompressed over compressed size; Spark's event logs have 20 to 60, recordings less
FREE_BYTES = 16 * 1024 * 1024  # up to which a file may decompress whatever its ratio
MAX_WINDOW_BYTES = 64 * 1024 * 1024  # memory that a zstd frame may ask for; level 19 asks for 8 MiB
CHUNK_BYTES = 1024 * 1024
MAX_PASSED_BYTES = 2 * 1024**3  # of a line that is passed over: no string of Java is longer
HEAD_BYTES = 256  # of a line that is too long
ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
ZSTD_NAMES = (".zst", ".zstd")


class _Readable(Protocol):
    def read(self, size: int, /) -> bytes: ...


class Head(bytes):
    """The first bytes of a line that is too long to be read."""


def read_head(path: Path, size: int) -> bytes:
    """The first bytes of a regular file; empty when it cannot be read or is something else."""
    try:
        with open_regular(path) as file:
            return file.read(size)
    except (OSError, UserError):
        return b""


def numbered_lines(path: Path, is_known: Callable[[bytes], object] = lambda head: False) -> Iterator[tuple[int, bytes]]:
    """(number from 1, line with its newline) of the lines that are not blank; the last line may lack its newline.

    A zstd file is known by its first bytes. One that is still written ends within a frame: what is there is read.
    Of a line above MAX_LINE_BYTES a Head comes where `is_known` says that lines of this kind of file begin so. Raises
    UserError that names the file, and the line if it is too long.
    """
    try:
        with open_regular(path) as file:
            head = file.read(len(ZSTD_MAGIC))
            packed = head == ZSTD_MAGIC
            if head and not packed and path.name.endswith(ZSTD_NAMES):
                raise UserError(f"cannot read {path}: not zstd, or damaged")
            file.seek(0)
            yield from _unpacked(file, path, is_known) if packed else _split(file, path, is_known)
    except OSError as error:
        raise cannot_read(path, error) from None


def _unpacked(file: IO[bytes], path: Path, is_known: Callable[[bytes], object]) -> Iterator[tuple[int, bytes]]:
    import zstandard  # not needed by an application that is only watched

    most = FREE_BYTES + MAX_ZSTD_RATIO * os.fstat(file.fileno()).st_size
    try:
        decompressor = zstandard.ZstdDecompressor(max_window_size=MAX_WINDOW_BYTES)
        with decompressor.stream_reader(file, read_across_frames=True) as plain:
            yield from _split(plain, path, is_known, most)
    except zstandard.ZstdError as error:
        raise UserError(f"cannot read {path}: not zstd, or damaged ({str(error).lower()})") from None


def _split(
    file: _Readable, path: Path, is_known: Callable[[bytes], object], most: int | None = None
) -> Iterator[tuple[int, bytes]]:
    number, size = 0, 0  # number of the last complete line
    rest = b""  # of a line whose end is not read yet
    passed = 0  # bytes of a line that is too long, and whose end is not read yet
    while chunk := file.read(CHUNK_BYTES):
        size += len(chunk)
        if most is not None and size > most:
            raise UserError(
                f"cannot read {path}: it decompresses to more than {MAX_ZSTD_RATIO} times its size, which is too much "
                "for a recording or an event log; is it damaged?"
            )
        if passed:
            begin, newline, chunk = chunk.partition(b"\n")
            if (passed := passed + len(begin)) > MAX_PASSED_BYTES:
                raise _too_long(path, number + 1, MAX_PASSED_BYTES)
            if not newline:
                continue
            number, passed = number + 1, 0
        if not rest and not chunk.strip():  # a million blank lines at once
            number += chunk.count(b"\n")
            continue
        *lines, rest = (rest + chunk if rest else chunk).split(b"\n")
        for line in lines:
            number += 1
            if line:
                if len(line) > MAX_LINE_BYTES:
                    yield number, _head(line, path, number, is_known)
                elif line.strip():
                    yield number, line + b"\n"
        if len(rest) > MAX_LINE_BYTES:
            yield number + 1, _head(rest, path, number + 1, is_known)
            rest, passed = b"", len(rest)
    if rest.strip():
        yield number + 1, rest


def _head(line: bytes, path: Path, number: int, is_known: Callable[[bytes], object]) -> Head:
    head = Head(line[:HEAD_BYTES])
    if not is_known(head):
        raise _too_long(path, number, MAX_LINE_BYTES)
    return head


def _too_long(path: Path, number: int, size: int) -> UserError:
    return UserError(f"cannot read {path}:{number}: a line of more than {size // 1024**2} MiB")
