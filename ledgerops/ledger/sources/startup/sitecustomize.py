"""Answers Spark before the Python process that Spark started has imported anything.

Spark waits ten seconds, a constant, for the process of a Python data source to connect, and the process imports
PySpark first: 0.6 s of CPU time, which can take longer than that on a busy machine. Python imports this module at
0.02 s. The connection is made here and kept for PySpark.
"""

import os
import socket
import sys
from typing import Any

PORT, SECRET = "PYTHON_WORKER_FACTORY_PORT", "PYTHON_WORKER_FACTORY_SECRET"


def connect(port: int, secret: str) -> socket.socket:
    """A connection to Spark, authenticated as its SocketAuthHelper asks. Raises OSError."""
    connection = socket.create_connection(("127.0.0.1", port), float(os.environ.get("SPARK_AUTH_SOCKET_TIMEOUT", 15)))
    text = secret.encode()
    connection.sendall(len(text).to_bytes(4, "big") + text)
    answer = b""
    while len(answer) < 6 and (more := connection.recv(6 - len(answer))):
        answer += more
    if answer != b"\x00\x00\x00\x02ok":
        connection.close()
        raise OSError("Spark refused the connection")
    return connection


def keep_for_pyspark(connection: socket.socket) -> None:
    """PySpark's first attempt to connect gets `connection`; later ones, for other ports, connect as ever."""
    import pyspark.util

    connect_anew, kept = pyspark.util.local_connect_and_auth, [connection]

    def connected(*where: Any) -> tuple[Any, socket.socket]:
        if not kept:
            return connect_anew(*where)  # type: ignore[no-any-return]
        made = kept.pop()
        return made.makefile("rwb", int(os.environ.get("SPARK_BUFFER_SIZE", 65536))), made

    pyspark.util.local_connect_and_auth = connected


def run_the_next() -> None:
    """Imports the `sitecustomize` that this one hides, if there is one."""
    mine, here = sys.modules.pop(__name__), __file__.rpartition(os.sep)[0]
    path, sys.path[:] = sys.path[:], [each for each in sys.path if each != here]
    try:
        __import__("sitecustomize")
    except ModuleNotFoundError as error:
        if error.name != "sitecustomize":
            raise
    finally:
        sys.path[:] = path
        sys.modules[__name__] = mine


if __name__ == "sitecustomize":
    # a process that Spark starts with `-m` and a port to connect to; not the daemon, and nothing that those start
    if {PORT, SECRET} <= os.environ.keys() and sys.orig_argv[1:2] == ["-m"] and "pyspark." in sys.orig_argv[2]:
        try:
            keep_for_pyspark(connect(int(os.environ[PORT]), os.environ[SECRET]))
        except OSError:
            pass  # PySpark tries itself, and says what is wrong
    run_the_next()
