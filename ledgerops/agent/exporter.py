"""The HTTP server: everything it answers comes from the worker's snapshot, so no request can hold the job up.

Slow, huge and malformed requests cost a thread of a bounded number for a bounded time, and nothing else.
"""

from __future__ import annotations

import gzip
import hmac
import logging
import socket
import ssl
import threading
import time
from collections.abc import Callable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from typing import Any, NamedTuple, cast
from urllib.parse import parse_qs, urlsplit

import orjson

from ledgerops.agent.worker import Worker
from ledgerops.common.credentials import authorizations
from ledgerops.config import Config
from ledgerops.errors import UserError
from ledgerops.model.self_counts import SelfStats
from ledgerops.runtime import exposition
from ledgerops.runtime.status import status_document

log = logging.getLogger("ledgerops")

REQUESTS = 32  # at a time; more are turned away at once, so that a storm cannot take the driver's memory
REQUEST_SECONDS = 10.0  # a request that takes longer is cut, however little it trickles
QUIET_SECONDS = 5.0  # a client that says nothing for so long is cut
# the live page loads nothing but its figures, so nothing that slips into it could load more
POLICY = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; connect-src 'self'; img-src data:"
JSON, LINES, HTML = "application/json", "application/x-ndjson", "text/html; charset=utf-8"


class Answer(NamedTuple):
    body: bytes
    kind: str = JSON
    status: HTTPStatus = HTTPStatus.OK


class Exporter:
    """Serves one worker's snapshot. Raises OSError when the port is taken, UserError on unreadable secrets."""

    def __init__(
        self, config: Config, worker: Worker, stats: SelfStats, clock: Callable[[], float] = time.time
    ) -> None:
        self._worker, self._stats, self._clock = worker, stats, clock
        self._expected = config.expected_queries
        self._pages: dict[str, Callable[[dict[str, str], str], Answer]] = {
            "/": self._live,
            "/metrics": self._metrics,
            "/recording": self._recording,
            "/diagnosis": self._diagnosis,
            "/status": self._status,
            "/healthz": self._healthz,
        }
        credentials = _credentials(config)
        secure = _tls(config)
        self._server = _Server((config.host, config.port), self.answer, credentials, secure)
        self.port: int = self._server.server_address[1]
        host = "127.0.0.1" if config.host in ("0.0.0.0", "", "::") else config.host
        self.url = f"{'https' if secure else 'http'}://{f'[{host}]' if ':' in host else host}:{self.port}"
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.1}, name="ledgerops-exporter", daemon=True
        )

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        """Stops listening. May be called twice."""
        if self._thread.is_alive():
            self._server.shutdown()
        self._server.server_close()

    def close_inherited(self) -> None:
        """In a forked child: closes its copies of the sockets, which the parent goes on using."""
        self._server.socket.close()
        for request in list(self._server.open_requests()):
            request.close()

    def answer(self, target: str, accept: str) -> Answer:
        """The answer to a GET of `target`; what goes wrong is an answer, too."""
        try:
            parts = urlsplit(target)
        except ValueError:
            return _problem(HTTPStatus.BAD_REQUEST, "not an address")
        page = self._pages.get(parts.path)
        if page is None:
            return _problem(HTTPStatus.NOT_FOUND, f"no page {parts.path[:80]}; there are {', '.join(self._pages)}")
        try:
            return page({key: values[-1] for key, values in parse_qs(parts.query).items()}, accept)
        except Exception as error:
            self._stats.error("exporter")
            log.warning("cannot answer %s (%s: %.200s)", parts.path, type(error).__name__, error)
            return _problem(HTTPStatus.INTERNAL_SERVER_ERROR, "this page cannot be made; see the driver's log")

    def _metrics(self, query: dict[str, str], accept: str) -> Answer:
        began = time.perf_counter()
        kind = exposition.accepted(accept)
        body = exposition.render(self._worker.snapshot, self._stats.copy(), self._clock(), kind, self._expected)
        with self._stats.lock:
            self._stats.scrape_seconds = time.perf_counter() - began
        return Answer(body, kind)

    def _recording(self, query: dict[str, str], accept: str) -> Answer:
        try:
            since = self._clock() - float(query["since"]) if "since" in query else 0.0
        except ValueError:
            return _problem(HTTPStatus.BAD_REQUEST, f"since must be seconds, not {query['since'][:40]!r}")
        name = query.get("query")
        lines = self._worker.ring.copy()
        return Answer(b"".join(line for at, of, line in lines if at >= since and name in (None, of)), LINES)

    def _diagnosis(self, query: dict[str, str], accept: str) -> Answer:
        from ledgerops.diagnosis.report import document

        snapshot, name = self._worker.snapshot, query.get("query")
        if name is not None and name not in snapshot.queries:
            return _problem(HTTPStatus.NOT_FOUND, f"no query {name[:80]!r}; known are {', '.join(snapshot.queries)}")
        verdicts = [verdict for verdict in snapshot.verdicts() if name in (None, verdict.query)]
        return Answer(orjson.dumps(document(verdicts, self._clock(), self.url)) + b"\n")

    def _status(self, query: dict[str, str], accept: str) -> Answer:
        return Answer(orjson.dumps(status_document(self._worker.snapshot, self._clock())) + b"\n")

    def _healthz(self, query: dict[str, str], accept: str) -> Answer:
        trouble = self._worker.trouble()
        if trouble is None:
            return Answer(b"ok\n", "text/plain; charset=utf-8")
        return Answer(f"{trouble}\n".encode(), "text/plain; charset=utf-8", HTTPStatus.SERVICE_UNAVAILABLE)

    def _live(self, query: dict[str, str], accept: str) -> Answer:
        return Answer(files("ledgerops.agent").joinpath("live.html").read_bytes(), HTML)


def _problem(status: HTTPStatus, text: str) -> Answer:
    return Answer(orjson.dumps({"error": text}) + b"\n", JSON, status)


def _credentials(config: Config) -> tuple[bytes, ...]:
    """The Authorization headers that are let in; empty when everybody is."""
    named = authorizations(config.basic_auth_user, config.basic_auth_password_file, config.bearer_token_file)
    return tuple(each.encode() for each in named)


def _tls(config: Config) -> ssl.SSLContext | None:
    if not config.tls_certificate:
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        context.load_cert_chain(config.tls_certificate, config.tls_key)
    except (OSError, ssl.SSLError) as error:
        raise UserError(f"cannot use the certificate {config.tls_certificate}: {error}") from None
    return context


class _Server(ThreadingHTTPServer):
    """At most REQUESTS threads, none for longer than REQUEST_SECONDS."""

    daemon_threads = True
    request_queue_size = 64

    def __init__(
        self,
        address: tuple[str, int],
        answer: Callable[[str, str], Answer],
        credentials: tuple[bytes, ...],
        secure: ssl.SSLContext | None,
    ) -> None:
        self.answer, self.credentials, self.secure = answer, credentials, secure
        self._slots = threading.BoundedSemaphore(REQUESTS)
        self._open: dict[socket.socket, float] = {}
        if ":" in address[0]:
            self.address_family = socket.AF_INET6
        super().__init__(address, _Handler)

    def open_requests(self) -> list[socket.socket]:
        """Connections that are being served."""
        return list(self._open)

    def server_bind(self) -> None:
        """Without the look-up of the host's name that HTTPServer does: it may hang for seconds."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.socket.bind(self.server_address)
        self.server_address = self.socket.getsockname()
        self.server_name, self.server_port = str(self.server_address[0]), self.server_address[1]

    def get_request(self) -> tuple[socket.socket, Any]:
        request, address = super().get_request()
        if self.secure is not None:
            request = self.secure.wrap_socket(request, server_side=True, do_handshake_on_connect=False)
        return request, address

    def process_request(self, request: Any, client_address: Any) -> None:
        if not self._slots.acquire(blocking=False):
            self.shutdown_request(request)
            return
        self._open[request] = time.monotonic()
        try:
            super().process_request(request, client_address)
        except RuntimeError:  # no more threads
            self._release(request)
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._release(request)

    def service_actions(self) -> None:
        """Cuts what has taken too long; called between requests."""
        limit = time.monotonic() - REQUEST_SECONDS
        for request, began in list(self._open.items()):
            if began < limit:
                try:
                    request.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A broken connection is the client's affair: not a word in the job's output."""

    def _release(self, request: Any) -> None:
        if self._open.pop(request, None) is not None:
            self._slots.release()


class _Handler(BaseHTTPRequestHandler):
    timeout = QUIET_SECONDS
    protocol_version = "HTTP/1.1"
    server_version = "ledgerops"
    sys_version = ""

    def setup(self) -> None:
        super().setup()
        if isinstance(self.request, ssl.SSLSocket):  # here, not in the accepting thread, which it would hold up
            self.request.do_handshake()

    def do_GET(self) -> None:
        server = cast(_Server, self.server)
        if server.credentials and not self._let_in(server.credentials):
            answer = _problem(HTTPStatus.UNAUTHORIZED, "credentials are required")
        else:
            answer = server.answer(self.path, self.headers.get("Accept", ""))
        body = answer.body
        self.send_response(answer.status)
        if answer.status is HTTPStatus.UNAUTHORIZED:
            self.send_header("WWW-Authenticate", 'Basic realm="ledgerops"')
        if len(body) > 1024 and "gzip" in self.headers.get("Accept-Encoding", ""):
            body = gzip.compress(body, 1)  # level 9 takes twenty times as long for a fifth less
            self.send_header("Content-Encoding", "gzip")
        self.send_header("Content-Type", answer.kind)
        self.send_header("X-Content-Type-Options", "nosniff")
        if answer.kind == HTML:
            self.send_header("Content-Security-Policy", POLICY)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Connection", "close")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def do_HEAD(self) -> None:
        self.do_GET()

    def _let_in(self, credentials: tuple[bytes, ...]) -> bool:
        given = self.headers.get("Authorization", "").encode("utf-8", "replace")
        return any(hmac.compare_digest(given, expected) for expected in credentials)

    def log_message(self, format: str, *args: Any) -> None:
        """Requests are not the job's output."""
