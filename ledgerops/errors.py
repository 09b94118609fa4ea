"""The one error that a user is meant to see, and hints for it."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from pathlib import Path


class UserError(Exception):
    """Bad input: one lower-case line that says what is wrong, where, and what to do. Exit code 2."""


def cannot_write(file: Path, error: OSError) -> UserError:
    """Says of a file that it cannot be written, and why."""
    return UserError(f"cannot write {file}: {os_reason(error)}")


@contextmanager
def writing_to(folder: Path) -> Iterator[None]:
    """Raises UserError for an OSError within: the folder cannot be written to, and why."""
    try:
        yield
    except OSError as error:
        raise UserError(f"cannot write to {folder}: {os_reason(error)}") from None


def cannot_read(file: Path | str, error: OSError | UnicodeDecodeError, remedy: str = "") -> UserError:
    """Says of a file that it cannot be read, why, and what to do."""
    reason = "not UTF-8 text" if isinstance(error, UnicodeDecodeError) else os_reason(error)
    return UserError(f"cannot read {file}: {reason}{f'; {remedy}' if remedy else ''}")


def did_you_mean(name: str, known: Iterable[str], otherwise: str) -> str:
    """The hint for a misspelt name: `did you mean slow-sink?`, or `otherwise` where nothing is near."""
    near = get_close_matches(name, list(known), n=1)
    return f"did you mean {near[0]}?" if near else otherwise


def os_reason(error: OSError) -> str:
    """Why the system refused, in its words: `no space left on device`."""
    return (error.strerror or str(error)).lower()


def server_reason(error: OSError | ValueError) -> str:
    """Why a request failed, without urllib's wrapping: `connection refused`, `invalid ipv6 url`."""
    reason = getattr(error, "reason", None) or error
    return os_reason(reason) if isinstance(reason, OSError) else str(reason).lower()
