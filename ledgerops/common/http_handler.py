"""One request to one of our HTTP servers: its limits, and how its answer is sent."""

import re
import ssl
from collections.abc import Callable
from http import HTTPStatus
from http.client import LineTooLong
from http.server import BaseHTTPRequestHandler
from typing import Any, NamedTuple, Protocol, cast

import orjson

from ledgerops.common.http_access import Access

MAX_HEAD_BYTES = 131_072  # of request line and headers together; the library allows a hundred headers of 64 kB each
QUIET_SECONDS = 5.0  # after which a silent client is cut off
# the live page loads nothing but its figures, so nothing that slips into it could load more
POLICY = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; connect-src 'self'; img-src data:"
SCRAPER_HEADER = "X-Prometheus-Scrape-Timeout-Seconds"  # of Prometheus, its agents, vmagent and the Collector
JSON, LINES, HTML = "application/json", "application/x-ndjson", "text/html; charset=utf-8"


class Request(NamedTuple):
    """One request that has come in whole. The method is GET (also for HEAD) or, where bodies are taken, POST."""

    target: str
    method: str = "GET"
    accept: str = ""
    body: bytes = b""
    gzip: bool = False  # whether the client understands it
    client: str = ""  # its address, without the port
    scrapes: bool = False  # whether it says that it is Prometheus, or one that scrapes as it does


class Answer(NamedTuple):
    """The answer to one request."""

    body: bytes
    kind: str = JSON
    status: HTTPStatus = HTTPStatus.OK
    packed: bool = False  # whether the body is in gzip
    headers: tuple[tuple[str, str], ...] = ()  # besides those that every answer has


def problem(status: HTTPStatus, text: str) -> Answer:
    """An answer that says in one line what is wrong."""
    return Answer(orjson.dumps({"error": text}) + b"\n", JSON, status)


class Answering(Protocol):
    """What a server gives its handlers; see `Server`."""

    access: Access
    max_body_bytes: int
    problem: Callable[[HTTPStatus, str], Answer]

    def respond(self, request: Any, asked: Request) -> Answer:
        """The answer to what a connection has asked, which is allowed."""

    def request_is_in(self, request: Any) -> None:
        """Called once a request has come in whole."""


GZIP = re.compile(r"(?:x-)?gzip\s*(?:;\s*q=(?P<weight>[01](?:\.\d{0,3})?)\s*)?", re.IGNORECASE)


def takes_gzip(accepted: str) -> bool:
    """Whether the header Accept-Encoding asks for gzip: with the weight 0 it says that it must not be."""
    found = (GZIP.fullmatch(each.strip()) for each in accepted.split(","))
    return any(each is not None and float(each["weight"] or 1) > 0 for each in found)


class BoundedHead:
    """The stream of a request of which only so much is read line by line."""

    def __init__(self, stream: Any) -> None:
        self._stream, self._left = stream, MAX_HEAD_BYTES
        self.read, self.close = stream.read, stream.close

    def readline(self, limit: int) -> bytes:
        """Raises LineTooLong, which the library answers with 431."""
        line: bytes = self._stream.readline(limit)
        self._left -= len(line)
        if self._left < 0:
            raise LineTooLong("header")
        return line

    @property
    def closed(self) -> bool:
        """Whether the stream is."""
        return bool(self._stream.closed)


class Handler(BaseHTTPRequestHandler):
    """One connection with one request."""

    timeout = QUIET_SECONDS
    wbufsize = 65_536  # so that a small answer is sent at once with its head
    protocol_version = "HTTP/1.1"
    server_version = "ledgerops"
    sys_version = ""

    def setup(self) -> None:
        """Prepares the streams and completes the TLS handshake. Raises OSError when the handshake fails."""
        super().setup()
        self.rfile = BoundedHead(self.rfile)  # type: ignore[assignment]
        if isinstance(self.request, ssl.SSLSocket):  # here, not in the accepting thread, which it would hold up
            self.request.do_handshake()

    def do_GET(self) -> None:
        self._serve("GET", b"")

    def do_HEAD(self) -> None:
        self._serve("GET", b"")

    def do_POST(self) -> None:
        server = cast(Answering, self.server)
        length = self.headers.get("Content-Length", "")
        if server.max_body_bytes == 0:
            self._say(server.problem(HTTPStatus.NOT_IMPLEMENTED, "only GET"))
        elif self.headers.get("Origin"):  # a browser would send it to loopback, too
            self._say(server.problem(HTTPStatus.FORBIDDEN, "requests of web pages are refused"))
        elif not (length.isascii() and length.isdecimal()):
            self._say(server.problem(HTTPStatus.LENGTH_REQUIRED, "Content-Length is missing"))
        elif len(length) > 18 or int(length) > server.max_body_bytes:
            self._pass_over(min(int(length[:18]), 4 * server.max_body_bytes))
            text = f"at most {server.max_body_bytes} bytes"
            self._say(server.problem(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, text))
        else:
            body = self.rfile.read(int(length))
            if len(body) == int(length):  # else the client is gone
                self._serve("POST", body)

    def _pass_over(self, left: int) -> None:
        """Reads and drops the rest: a client that is still sending would see a reset and not the answer."""
        while left > 0 and (part := self.rfile.read(min(left, 65536))):
            left -= len(part)

    def _serve(self, method: str, body: bytes) -> None:
        server, headers = cast(Answering, self.server), self.headers
        server.request_is_in(self.request)
        refusal = server.access.refusal(self.path, headers.get("Host", ""), headers.get("Authorization", ""))
        if len(headers.get_all("Host", [])) > 1:  # RFC 9112, section 3.2: somebody else may read the other one
            refusal = HTTPStatus.BAD_REQUEST, "more than one Host"
        packed = takes_gzip(headers.get("Accept-Encoding", ""))
        scrapes = SCRAPER_HEADER in headers
        request = Request(self.path, method, headers.get("Accept", ""), body, packed, self.client_address[0], scrapes)
        self._say(server.problem(*refusal) if refusal else server.respond(self.request, request))

    def _say(self, answer: Answer) -> None:
        body = answer.body
        self.send_response(answer.status)
        if answer.status is HTTPStatus.UNAUTHORIZED:
            self.send_header("WWW-Authenticate", 'Basic realm="ledgerops"')
        if answer.packed:
            self.send_header("Content-Encoding", "gzip")
        self.send_header("Content-Type", answer.kind)
        self.send_header("X-Content-Type-Options", "nosniff")
        if answer.kind == HTML:
            self.send_header("Content-Security-Policy", POLICY)
        for name, value in answer.headers:
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Connection", "close")
        self.end_headers()
        if self.command != "HEAD":
            for first in range(0, len(body), self.wbufsize):  # TLS has one deadline for all that is written at once
                self.wfile.write(body[first : first + self.wbufsize])

    def log_message(self, format: str, *args: Any) -> None:
        """Requests are not the job's output."""
