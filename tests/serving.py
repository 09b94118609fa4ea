"""Servers of tests, on free ports of loopback."""

import socket
import threading
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from ledgerops.servers.background import Background, Quiet

__all__ = ["Background", "Quiet", "fetched", "talking"]


def fetched(url: str, seconds: float = 30.0) -> str:
    """The text at an address. Raises OSError without an answer, and for one that is an error."""
    with urllib.request.urlopen(url, timeout=seconds) as answer:
        return answer.read().decode()


@contextmanager
def talking(talk: Callable[[socket.socket], None]) -> Iterator[int]:
    """The port of a server that leaves each connection to `talk`, in a thread, and closes it when that has ended."""
    server = socket.create_server(("127.0.0.1", 0))

    def serve(connection: socket.socket) -> None:
        with connection, suppress(OSError):
            talk(connection)

    def accept() -> None:
        with suppress(OSError):
            while True:
                threading.Thread(target=serve, args=(server.accept()[0],), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    try:
        yield server.getsockname()[1]
    finally:
        server.shutdown(socket.SHUT_RDWR)  # which ends the accepting
        server.close()
