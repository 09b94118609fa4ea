import signal
from subprocess import PIPE, Popen
from types import SimpleNamespace

from py4j.protocol import Py4JError, Py4JJavaError, Py4JNetworkError

from ledgerops.agent.application_error import application_error
from tests.tables import cases


def of_java(answer):
    """An error of the JVM, which is asked for its text when that is needed."""

    def ask(command):
        if answer is None:
            raise Py4JNetworkError("Answer from Java side is empty")
        return f"ys{answer}"

    thrown = SimpleNamespace(_target_id="o86", _gateway_client=SimpleNamespace(send_command=ask))
    return Py4JJavaError("An error occurred while calling o85.save.\n", thrown)


def refused(file):
    """A refused connection as the code of that file gets it."""
    names = {"error": ConnectionRefusedError(111, "Connection refused")}
    try:
        exec(compile("raise error", file, "exec"), names)
    except ConnectionRefusedError as error:
        return error


CALL_OF_JVM = "/usr/lib/python3/site-packages/py4j/clientserver.py"
OF_JAVA = "java.lang.IllegalStateException: no config\\n\\tat Main.run(Main.scala:3)"


@cases(
    "error, told",
    ("an exception", RuntimeError("config lookup failed\nand more"), "RuntimeError: config lookup failed"),
    ("one without a message", KeyError(), "KeyError"),
    ("of the JVM", of_java(OF_JAVA), "Py4JJavaError: java.lang.IllegalStateException: no config"),
    ("of a JVM that has gone", of_java(None), "Py4JJavaError"),
    ("its own service refused it", refused("/app/job.py"), "ConnectionRefusedError: [Errno 111] Connection refused"),
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
    ("nothing listens there any more", {"last_value": refused(CALL_OF_JVM)}),
    ("a job was cancelled", {"last_value": RuntimeError("Job 3 cancelled because SparkContext was shut down")}),
    ("a cell of a notebook failed", {"last_value": RuntimeError("x"), "ps1": "In : "}),
)
def test_an_application_that_was_stopped_has_no_error(python):
    assert application_error(SimpleNamespace(**python)) is None


@cases(
    "ends, told",
    ("the kernel killed it", "kill -KILL $$", "SIGKILL of its JVM"),
    ("it ran out of its heap, and was told to end then", "exit 3", "exit code 3 of its JVM"),
    ("it was told to end", "kill -TERM $$", None),
    ("it ended upon a signal", "exit 143", None),
    ("it goes on", "read line", None),
)
def test_of_an_application_that_lost_its_jvm_it_is_told_how_that_ended(monkeypatch, ends, told):
    monkeypatch.setattr("ledgerops.agent.application_error.JVM_END_SECONDS", 0.5)
    with Popen(["sh", "-c", ends], stdin=PIPE) as jvm:
        if ends != "read line":
            jvm.wait()
        lost = SimpleNamespace(last_value=refused(CALL_OF_JVM))
        assert application_error(lost, jvm) == told
        assert application_error(SimpleNamespace(last_value=SystemExit(0)), jvm) is None


def test_whoever_refuses_the_application_is_not_taken_for_its_jvm():
    with Popen(["sh", "-c", "exit 3"]) as jvm:
        jvm.wait()
        own = SimpleNamespace(last_value=refused("/app/job.py"))
        assert application_error(own, jvm) == "ConnectionRefusedError: [Errno 111] Connection refused"
