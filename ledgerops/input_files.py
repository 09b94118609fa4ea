"""The one way to open a file that a user names, also by a URI: regular files only, and texts of a bounded size.

A FIFO would block for ever, and a device has no end.
"""

import io
import os
import stat
from pathlib import Path
from urllib.parse import unquote, urlsplit

from ledgerops.errors import UserError, cannot_read

MAX_TEXT_BYTES = 256 * 1024 * 1024  # of a file that is read at once; most have less than one MiB


def open_regular(path: Path) -> io.BufferedReader:
    """A regular file for reading, without ever waiting for it. Raises UserError for anything else, and OSError."""
    # without O_NONBLOCK the opening of a FIFO waits for a writer
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise UserError(f"cannot read {path}: not a regular file")
    return os.fdopen(descriptor, "rb")


def read_text(path: Path, encoding: str = "utf-8") -> str:
    """The text of a regular file of at most MAX_TEXT_BYTES.

    Raises UserError for anything else, OSError and UnicodeDecodeError.
    """
    with open_regular(path) as file:
        content = file.read(MAX_TEXT_BYTES + 1)
    if len(content) > MAX_TEXT_BYTES:
        raise UserError(f"cannot read {path}: it has more than {MAX_TEXT_BYTES // 1024**2} MiB")
    return io.TextIOWrapper(io.BytesIO(content), encoding).read()  # line ends become those of text


def text_of(path: Path, encoding: str = "utf-8") -> str:
    """The same, for a caller that needs the file: raises UserError alone, which names it and says why."""
    try:
        return read_text(path, encoding)
    except (OSError, UnicodeDecodeError) as error:
        raise cannot_read(path, error) from None


def local_path(uri: str) -> Path | None:
    """The path of a file of this machine in a URI such as `file:/data/a%20b`; None for another file system's."""
    try:
        parts = urlsplit(uri)
    except ValueError:
        return None
    return Path(unquote(parts.path)) if parts.scheme == "file" and not parts.netloc and parts.path else None
