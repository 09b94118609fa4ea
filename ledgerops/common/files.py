"""Files that are written whole or not at all: a reader sees the old content or the new one, and never half of it.

The content goes to a hidden file beside the target, which then takes the target's name. That holds against a crash of
this process; nothing is synced to disk, so after a power failure the newest content may be missing.
"""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any


@contextmanager
def replacing(file: Path) -> Iterator[Path]:
    """A path to write to, which becomes `file` when the block ends, and is removed when the block raises.

    The folder of `file` must exist. Two processes that write the same file do not disturb each other: the last one
    to end wins. Raises OSError when the file cannot take its name.
    """
    part = part_of(file)
    part.unlink(missing_ok=True)  # left by a process that was killed and had the same id
    try:
        yield part
        part.replace(file)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


def part_of(file: Path) -> Path:
    """Where this process writes what is to become `file`: hidden, so that Spark and others do not read it."""
    return file.with_name(f".{file.name}.{os.getpid()}.part")


def write_bytes(file: Path, content: bytes) -> None:
    """Raises OSError; `file` is then as it was before."""
    with replacing(file) as part:
        part.write_bytes(content)


def write_text(file: Path, content: str) -> None:
    """UTF-8. Raises OSError; `file` is then as it was before."""
    write_bytes(file, content.encode())


def write_json(file: Path, document: Any, indent: int | None = None) -> None:
    """One JSON document and a newline. Raises OSError, or TypeError or ValueError for what JSON cannot hold."""
    write_text(file, json.dumps(document, indent=indent) + "\n")


def locked(file: Path) -> IO[str] | None:
    """The file, made for its owner alone, which no other process can lock until this one is closed or its process ends;
    None while another has it. Raises OSError, and ImportError where there are no locks (Windows)."""
    import fcntl

    lock = private(file, os.O_NOFOLLOW)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        lock.close()
        if isinstance(error, BlockingIOError):
            return None
        raise
    return lock


def private(file: Path, flags: int = 0) -> IO[str]:
    """Opens a file that only its owner may read, and leaves its content. Raises OSError."""
    return os.fdopen(os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | flags, 0o600), "r+", encoding="utf-8")
