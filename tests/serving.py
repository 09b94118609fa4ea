"""Servers of tests, on free ports of loopback."""

import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class Quiet(BaseHTTPRequestHandler):
    """A handler that prints nothing."""

    def log_message(self, *args: Any) -> None:
        pass

    def reply(self, status: int = 200, body: bytes = b"", headers: Mapping[str, str] | None = None) -> None:
        """The whole answer."""
        self.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)


class Background(ThreadingHTTPServer):
    """Answers with `handler`, which may keep what it likes at its `server`, from now on until it is closed."""

    request_queue_size = 128

    def __init__(self, handler: type[BaseHTTPRequestHandler], host: str = "127.0.0.1", port: int = 0) -> None:
        super().__init__((host, port), handler)
        self.address = f"{host}:{self.server_port}"
        self.url = f"http://{self.address}"
        self._thread = threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self.shutdown()
        self._thread.join()
        self.server_close()


@contextmanager
def serving(handler: type[BaseHTTPRequestHandler]) -> Iterator[Any]:
    """A server that answers with `handler` until the end of the block."""
    server = Background(handler)
    try:
        yield server
    finally:
        server.close()


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
