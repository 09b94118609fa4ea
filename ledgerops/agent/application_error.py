"""What the application ended with, as Python knows it when it exits."""

import contextlib
import signal
import subprocess
import sys
from traceback import walk_tb
from typing import Any

from ledgerops.common.python_code import is_sparks
from ledgerops.model.stops import OF_JVM, stopped_with_application

STOPPED_CODES = (None, 0, 130, 143)  # of sys.exit; the last two are those of Ctrl-C and SIGTERM
STOPPING_SIGNALS = (signal.SIGHUP, signal.SIGINT, signal.SIGTERM)
SIGNALS = {each.value: each.name for each in signal.Signals}
JVM_END_SECONDS = 2.0  # it may close its connections before it has ended


def application_error(python: Any = sys, jvm: subprocess.Popen[bytes] | None = None) -> str | None:
    """Class and first line of an exception that nothing caught, or the exit code, which only `ledgerops exec` leaves
    in `sys.last_value`; or how the JVM ended that the application has lost. None where it just ended or was stopped;
    and at a prompt or in a notebook, which go on after an exception."""
    error: BaseException | None = getattr(python, "last_value", None)
    if hasattr(python, "ps1"):
        return None
    if isinstance(error, SystemExit):
        if error.code in STOPPED_CODES:
            return None
        return f"exit code {error.code}" if isinstance(error.code, int) else f"exit code 1: {_first_line(error)}"
    if not isinstance(error, Exception) or stopped_with_application(_text(error)):
        return None
    if _has_lost_jvm(error):
        return None if jvm is None else _end(jvm)
    return f"{type(error).__name__}: {_first_line(error)}".removesuffix(": ")


def gateway_process() -> subprocess.Popen[bytes] | None:
    """The JVM that PySpark has started; None without one, as where spark-submit began with the JVM, or of a client of
    Spark Connect, whose package has no SparkContext."""
    context = getattr(sys.modules.get("pyspark"), "SparkContext", None)
    return getattr(getattr(context, "_gateway", None), "proc", None)


def _has_lost_jvm(error: Exception) -> bool:
    """Whether a call of the JVM failed, which has gone or was told to end. A connection that Spark's Python does not
    use is one to another service."""
    if isinstance(error, ConnectionError):
        return any(is_sparks(frame.f_code.co_filename) for frame, _ in walk_tb(error.__traceback__))
    return type(error).__module__ == "py4j.protocol" and not hasattr(error, "java_exception")


def _end(jvm: subprocess.Popen[bytes]) -> str | None:
    """What ended it, unless somebody stopped it or it has not ended."""
    with contextlib.suppress(subprocess.TimeoutExpired):
        jvm.wait(JVM_END_SECONDS)
    code = jvm.returncode
    if code in STOPPED_CODES or (code < 0 and -code in STOPPING_SIGNALS):
        return None
    return (SIGNALS.get(-code, f"signal {-code}") if code < 0 else f"exit code {code}") + OF_JVM


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
