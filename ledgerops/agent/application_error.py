"""What the application ended with, as Python knows it when it exits."""

import sys
from typing import Any

from ledgerops.model.stops import stopped_with_application

STOPPED_CODES = (None, 0, 130, 143)  # of sys.exit; the last two are those of Ctrl-C and SIGTERM


def application_error(python: Any = sys) -> str | None:
    """Class and first line of an exception that nothing caught, or the exit code, which only `ledgerops exec` leaves
    in `sys.last_value`. None where the application just ended, was stopped, or lost its JVM; and at a prompt or in a
    notebook, which go on after an exception."""
    error: BaseException | None = getattr(python, "last_value", None)
    if hasattr(python, "ps1"):
        return None
    if isinstance(error, SystemExit):
        if error.code in STOPPED_CODES:
            return None
        return f"exit code {error.code}" if isinstance(error.code, int) else f"exit code 1: {_first_line(error)}"
    if not isinstance(error, Exception) or isinstance(error, ConnectionError) or stopped_with_application(_text(error)):
        return None
    is_of_py4j = type(error).__module__ == "py4j.protocol"
    if is_of_py4j and not hasattr(error, "java_exception"):  # the JVM has gone, or was told to end
        return None
    return f"{type(error).__name__}: {_first_line(error)}".removesuffix(": ")


def _first_line(error: BaseException) -> str:
    """Of an error in the JVM that of its cause: Py4J's own line only says what was called."""
    call, _, rest = _text(error).partition("\n")
    return (rest.removeprefix(": ") if hasattr(error, "java_exception") else call).partition("\n")[0]


def _text(error: BaseException) -> str:
    """Empty where it cannot be had: Py4J asks the JVM for it, which may have gone, and a class may do anything."""
    try:
        return str(error).strip()
    except Exception:
        return ""
