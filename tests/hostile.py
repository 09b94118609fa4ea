"""Peers that mean no good: servers that never answer, answer without end, or with too much."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from tests.serving import talking

HEAD_WITHOUT_END = b"HTTP/1.1 200 OK\r\nX: "
BODY_WITHOUT_END = b"HTTP/1.1 200 OK\r\n\r\n"


@contextmanager
def dripping_server(begin: bytes = HEAD_WITHOUT_END, drop: bytes = b"x", seconds: float = 0.1) -> Iterator[str]:
    """The address of a server that answers every connection with `begin` and then a `drop` each so many seconds."""
    ended = threading.Event()

    def drip(connection: socket.socket) -> None:
        connection.sendall(begin)
        while not ended.wait(seconds):
            connection.sendall(drop)

    with talking(drip) as port:
        yield f"http://127.0.0.1:{port}"
        ended.set()


@contextmanager
def silent_server() -> Iterator[str]:
    """The address of a server that takes what is sent and says nothing."""

    def listen(connection: socket.socket) -> None:
        while connection.recv(65_536):
            pass

    with talking(listen) as port:
        yield f"http://127.0.0.1:{port}"
