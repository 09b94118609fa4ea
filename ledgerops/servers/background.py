"""A small HTTP server in a thread of this process, on loopback."""

import threading
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class Quiet(BaseHTTPRequestHandler):
    """A handler that prints nothing."""

    def log_message(self, *args: Any) -> None:
        """Says nothing: thousands of calls would drown what matters."""

    def reply(self, status: int = 200, body: bytes = b"", headers: Mapping[str, str] | None = None) -> None:
        """The whole answer."""
        self.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)


class Background(ThreadingHTTPServer):
    """Answers with `handler`, which may keep what it likes at its `server`, from now on until it is closed, or until
    the end of a `with`."""

    request_queue_size = 512

    def __init__(self, handler: type[BaseHTTPRequestHandler], host: str = "127.0.0.1", port: int = 0) -> None:
        super().__init__((host, port), handler)
        self.address = f"{host}:{self.server_port}"
        self.url = f"http://{self.address}"
        self._thread = threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Ends the server and its thread."""
        self.shutdown()
        self._thread.join()
        self.server_close()

    def __exit__(self, *_: object) -> None:
        self.close()
