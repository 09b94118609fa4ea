"""The standard streams of a command: closed, full, or unable to show a sign, they change neither its work nor its exit
code for another reason."""

import errno
import io
import os
import sys
from typing import TextIO

from ledgerops.common.format import clean


def prepare_streams() -> None:
    """Opens closed streams on the null device, or a file of the command would get their number; replaces signs that
    the terminal lacks by a question mark."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)  # opens the lowest number that is free: this one
    if sys.stdout is None:
        sys.stdout = os.fdopen(1, "w", encoding="utf-8", closefd=False)
    if sys.stderr is None:
        sys.stderr = os.fdopen(2, "w", encoding="utf-8", closefd=False)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")


def print_note(line: str) -> None:
    """One line to standard output of a service, which goes on when it cannot be written."""
    try:
        print(line, flush=True)
    except OSError:
        drop(sys.stdout)


def print_error(line: str) -> None:
    """One line to standard error, if that can be written. It may repeat what a file or an argument holds."""
    try:
        print(clean(" ".join(line.splitlines())), file=sys.stderr, flush=True)
    except OSError:
        drop(sys.stderr)


def is_of_output(error: OSError) -> bool:
    """Whether a write failed because of the place, such as a full disk; what cannot be opened has a file name."""
    return error.filename is None and error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)


def drop(stream: TextIO) -> None:
    """Sends what is left in a stream to the null device: at the interpreter's exit it must not raise again."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
