import signal
from types import SimpleNamespace

from py4j.protocol import Py4JError, Py4JNetworkError

from ledgerops.agent.application_error import application_error
from tests.tables import cases


@cases(
    "error, told",
    ("an exception", RuntimeError("config lookup failed\nand more"), "RuntimeError: config lookup failed"),
    ("one without a message", KeyError(), "KeyError"),
    ("an exit code", SystemExit(3), "exit code 3"),
    ("a message to exit with", SystemExit("no config"), "exit code 1: no config"),
)
def test_what_the_application_ended_with_is_told(error, told):
    assert application_error(SimpleNamespace(last_value=error)) == told


@cases(
    "python",
    ("it just ended", {}),
    ("sys.exit()", {"last_value": SystemExit()}),
    ("sys.exit(0)", {"last_value": SystemExit(0)}),
    ("Ctrl-C", {"last_value": KeyboardInterrupt()}),
    ("a handler of SIGTERM", {"last_value": SystemExit(128 + signal.SIGTERM)}),
    ("the JVM was stopped", {"last_value": Py4JError("An error occurred while calling o40.awaitTermination")}),
    ("the JVM has gone", {"last_value": Py4JNetworkError("Answer from Java side is empty")}),
    ("nothing listens there any more", {"last_value": ConnectionRefusedError(111, "Connection refused")}),
    ("a job was cancelled", {"last_value": RuntimeError("Job 3 cancelled because SparkContext was shut down")}),
    ("a cell of a notebook failed", {"last_value": RuntimeError("x"), "ps1": "In : "}),
)
def test_an_application_that_was_stopped_has_no_error(python):
    assert application_error(SimpleNamespace(**python)) is None
