"""A Python process that Spark starts has connected before it imports PySpark, and PySpark gets that connection."""

import os
import socket
import subprocess
import sys
from contextlib import ExitStack

import pytest

from ledgerops.ledger.sources.workers import STARTUP
from tests.tables import cases

SECRET = "open sesame"
# stands for PySpark: what it imports waits for the test, then it connects and says who it is
UTIL = """
import os, socket, sys
sys.stdin.readline()
def local_connect_and_auth(port, secret):
    made = socket.create_connection(("127.0.0.1", port))
    return made.makefile("rwb"), made
"""
RUNNER = """
import os, sys
from pyspark.util import local_connect_and_auth
if __name__ == "__main__":
    for _ in range(int(sys.argv[1])):
        file, connection = local_connect_and_auth(int(os.environ["PYTHON_WORKER_FACTORY_PORT"]), "")
        file.write(b"hello")
        file.flush()
"""


@pytest.fixture
def listener():
    with socket.create_server(("127.0.0.1", 0)) as made:
        made.settimeout(60.0)
        yield made


@pytest.fixture
def accept(listener):
    with ExitStack() as stack:

        def accept():
            connection = stack.enter_context(listener.accept()[0])
            connection.settimeout(60.0)
            return connection

        yield accept


@pytest.fixture
def start(tmp_path, listener):
    (tmp_path / "pyspark").mkdir()
    for name, text in (("__init__", ""), ("util", UTIL), ("runner", RUNNER)):
        (tmp_path / "pyspark" / f"{name}.py").write_text(text)
    started = []

    def start(*arguments, without=()):
        port, pipe = str(listener.getsockname()[1]), subprocess.PIPE
        env = {"PYTHON_WORKER_FACTORY_PORT": port, "PYTHON_WORKER_FACTORY_SECRET": SECRET}
        env = {name: value for name, value in env.items() if name not in without}
        env |= {"PYTHONPATH": os.pathsep.join([STARTUP, str(tmp_path)])}
        command = [sys.executable, *arguments]
        process = subprocess.Popen(command, env=os.environ | env, stdin=pipe, stdout=pipe, stderr=pipe, text=True)
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


def authenticate(connection):
    assert connection.recv(4) == len(SECRET).to_bytes(4, "big")
    assert connection.recv(100) == SECRET.encode()
    connection.sendall(b"\x00\x00\x00\x02ok")


def test_it_connects_before_pyspark_is_imported_which_uses_the_connection_once(start, accept):
    process = start("-m", "pyspark.runner", "2")

    first = accept()
    authenticate(first)
    assert process.poll() is None
    _, errors = process.communicate("go on\n", timeout=60.0)

    assert (first.recv(100), accept().recv(100), errors) == (b"hello", b"hello", "")


def test_pyspark_connects_itself_where_the_first_connection_was_refused(start, accept):
    process = start("-m", "pyspark.runner", "1")
    accept().close()
    _, errors = process.communicate("go on\n", timeout=60.0)
    assert (accept().recv(100), errors) == (b"hello", "")


@cases(
    "arguments, without",
    ("a program that such a process starts", ("-c", "print('done')"), ()),
    ("a module that is not Spark's", ("-m", "platform"), ()),
    ("Spark's daemon, without a port", ("-m", "pyspark.util"), ("PYTHON_WORKER_FACTORY_PORT",)),
)
def test_other_processes_connect_to_nothing(start, listener, arguments, without):
    process = start(*arguments, without=without)

    _, errors = process.communicate("go on\n", timeout=60.0)

    listener.setblocking(False)
    with pytest.raises(BlockingIOError):
        listener.accept()
    assert (process.returncode, errors) == (0, "")


def test_the_sitecustomize_that_is_hidden_runs_too(start, tmp_path):
    (tmp_path / "sitecustomize.py").write_text("print('mine')")
    out, _ = start("-c", "import sitecustomize; print(sitecustomize.__file__)").communicate(timeout=60.0)
    assert out.splitlines() == ["mine", f"{STARTUP}/sitecustomize.py"]
