"""Peers that mean no good: servers that answer without end, or with too much."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

HEAD_WITHOUT_END = b"HTTP/1.1 200 OK\r\nX: "
BODY_WITHOUT_END = b"HTTP/1.1 200 OK\r\n\r\n"


@contextmanager
def dripping_server(begin: bytes = HEAD_WITHOUT_END, drop: bytes = b"x", seconds: float = 0.1) -> Iterator[str]:
    """The address of a server that answers every connection with `begin` and then a `drop` each so many seconds."""
    server = socket.create_server(("127.0.0.1", 0))
    ended = threading.Event()

    def drip(connection: socket.socket) -> None:
        with connection:
            try:
                connection.sendall(begin)
                while not ended.wait(seconds):
                    connection.sendall(drop)
            except OSError:
                return

    def serve() -> None:
        while True:
            try:
                connection, _ = server.accept()
            except OSError:
                return
            threading.Thread(target=drip, args=(connection,), daemon=True).start()

    threading.Thread(target=serve, daemon=True).start()
    yield f"http://127.0.0.1:{server.getsockname()[1]}"
    ended.set()
    server.shutdown(socket.SHUT_RDWR)
    server.close()
