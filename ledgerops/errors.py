"""The one error that a user is meant to see."""

from pathlib import Path


class UserError(Exception):
    """Bad input: one lower-case line that says what is wrong, where, and what to do. Exit code 2."""


def cannot_write(file: Path, error: OSError) -> UserError:
    """Says of a file that it cannot be written, and why."""
    return UserError(f"cannot write {file}: {os_reason(error)}")


def os_reason(error: OSError) -> str:
    """Why the system refused, in its words: `no space left on device`."""
    return (error.strerror or str(error)).lower()
