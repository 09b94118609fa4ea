"""The service: accepts webhooks, keeps them on disk, and sends them, with a thread for each sender.

The webhook is answered once the incident is on disk. A delivery that fails is retried with growing waits, and delays no
other sender. If no diagnosis arrives in time, the alert is sent without one.
"""

from __future__ import annotations

import hmac
import json
import logging
import sqlite3
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from ledgerops.errors import UserError
from ledgerops.notify.incident import Incident, parse_webhook
from ledgerops.notify.lookup import Found, Lookup
from ledgerops.notify.message import Message, compose
from ledgerops.notify.senders import Sender
from ledgerops.notify.spool import Spool, Waiting

log = logging.getLogger("ledgerops.notify")

MAX_BYTES = 1024 * 1024  # of a webhook: 50 alerts take about 50 kB
QUIET_SECONDS = 10.0  # without a byte from a client
MESSAGE_SECONDS = 60.0  # for which senders share a message, and the diagnosis in it
MAX_MESSAGES = 100
LOOKUPS = 16  # messages that are written at the same time, each waiting for drivers


class Service:
    """`serve` binds, `close` ends; what waits then waits on disk."""

    def __init__(
        self,
        spool: Spool,
        lookup: Lookup,
        senders: Sequence[Sender],
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        token: str | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._spool, self._lookup, self._senders, self._clock = spool, lookup, senders, clock
        self._token = token
        self._wake = {sender.name: threading.Event() for sender in senders}
        self._stop = threading.Event()
        self._messages: dict[str, tuple[float, Future[Message]]] = {}  # incident -> since when, its message
        self._composing = threading.Lock()
        self._pool = ThreadPoolExecutor(LOOKUPS, thread_name_prefix="notify-compose")
        self.given_up = 0  # deliveries that were too old to go on with
        service = self

        class Handler(_Handler):
            notify = service

        try:
            self._server = ThreadingHTTPServer((host, port), Handler)
        except OSError as error:
            raise UserError(f"cannot listen on {host}:{port}: {(error.strerror or str(error)).lower()}") from None
        self._server.daemon_threads = True
        self._threads = [
            threading.Thread(target=self._server.serve_forever, name="notify-http", daemon=True),
            *(
                threading.Thread(target=self._work, args=(sender,), name=f"notify {sender.name}", daemon=True)
                for sender in senders
            ),
        ]

    @property
    def url(self) -> str:
        """The address on which it listens, such as http://127.0.0.1:9465, without a path."""
        host, port = self._server.server_address[:2]
        return f"http://{host!s}:{port}"

    def start(self) -> None:
        """Begins to accept webhooks and to send, on daemon threads. Call it once."""
        for thread in self._threads:
            thread.start()

    def close(self) -> None:
        """Stops accepting, waits up to 30 s for deliveries under way, and closes the queue. Requires `start`."""
        self._stop.set()
        for wake in self._wake.values():
            wake.set()
        self._server.shutdown()
        self._server.server_close()
        for thread in self._threads[1:]:
            thread.join(timeout=30 / len(self._senders))
        self._pool.shutdown(wait=False, cancel_futures=True)
        self._spool.close()

    def accept(self, body: bytes, authorization: str) -> tuple[HTTPStatus, str]:
        """What a POST is answered with."""
        if self._token and not hmac.compare_digest(authorization.encode(), f"Bearer {self._token}".encode()):
            return HTTPStatus.UNAUTHORIZED, "bearer token missing or wrong"
        try:
            payload = json.loads(body)
            incident = parse_webhook(payload)
            identity = incident.identity
        except (UserError, ValueError, TypeError, OverflowError, RecursionError) as error:
            return HTTPStatus.BAD_REQUEST, str(error).encode("utf-8", "replace").decode()[:300]
        try:
            new = self._spool.put(identity, incident.group, incident.worst.severity, payload, self._clock())
        except (OverflowError, sqlite3.Error) as error:
            return HTTPStatus.SERVICE_UNAVAILABLE, str(error)
        if new and incident.query:
            self._message(identity, incident)  # the diagnoses of all incidents are looked up at the same time
        for wake in self._wake.values():
            wake.set()
        return HTTPStatus.OK, "accepted" if new else "already accepted"

    def waiting(self) -> int:
        """The number of incidents that at least one sender has not delivered."""
        return len(self._spool)

    def _work(self, sender: Sender) -> None:
        """Delivers what one sender owes, one incident after the other."""
        wake = self._wake[sender.name]
        while not self._stop.is_set():
            wake.clear()
            try:
                waiting = self._spool.due(sender.name, self._clock())
                if waiting is not None:
                    self._deliver(sender, waiting)
                    continue
            except Exception as error:  # a full disk, say: this thread must go on, or no alert would ever be sent
                log.warning("the queue: %s: %s", type(error).__name__, error)
            wake.wait(1.0)

    def _deliver(self, sender: Sender, waiting: Waiting) -> None:
        try:
            sender.send(self._message(waiting.identity, parse_webhook(waiting.payload)).result(MESSAGE_SECONDS))
        except Exception as error:  # whatever a service raises: its queue goes on
            wait = self._spool.again(sender.name, waiting.number, self._clock())
            if wait is None:
                self.given_up += 1
                log.error("%s gave up incident %d: it is too old", sender.name, waiting.number)
            else:
                log.warning(
                    "%s did not deliver incident %d (%s); next attempt in %.0f s",
                    sender.name, waiting.number, type(error).__name__, wait,
                )  # fmt: skip
        else:
            self._spool.done(sender.name, waiting.number, self._clock())

    def _message(self, identity: str, incident: Incident) -> Future[Message]:
        """The message of an incident, with the diagnosis of its query; all senders share it."""
        with self._composing:
            since, message = self._messages.get(identity, (0.0, None))
            if message is None or time.monotonic() - since > MESSAGE_SECONDS:
                message = self._pool.submit(self._compose, incident)
                while len(self._messages) >= MAX_MESSAGES:
                    del self._messages[next(iter(self._messages))]
                self._messages[identity] = time.monotonic(), message
            return message

    def _compose(self, incident: Incident) -> Message:
        found = self._lookup.diagnose(incident.query, incident.job) if incident.query else Found(None)
        before = self._spool.recall(incident.group) if incident.status == "resolved" else None
        try:
            message = compose(incident, found.diagnosis, self._clock(), found.trouble, before)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            log.warning("a diagnosis that makes no sense (%s)", type(error).__name__)
            return compose(incident, None, self._clock(), "the driver's answer makes no sense")
        if incident.status == "firing" and found.diagnosis is not None:
            self._spool.remember(incident.group, incident.began, found.diagnosis, self._clock())
        return message


class _Handler(BaseHTTPRequestHandler):
    notify: Service
    timeout = QUIET_SECONDS
    server_version, sys_version = "ledgerops", ""

    def do_POST(self) -> None:
        if self.path.split("?", 1)[0] != "/alerts":
            return self._answer(HTTPStatus.NOT_FOUND, "POST to /alerts")
        length = self.headers.get("Content-Length", "")
        if not length.isdecimal():
            return self._answer(HTTPStatus.LENGTH_REQUIRED, "Content-Length is missing")
        if int(length) > MAX_BYTES:
            self._pass_over(min(int(length), 4 * MAX_BYTES))
            return self._answer(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"at most {MAX_BYTES} bytes")
        return self._answer(*self.notify.accept(self.rfile.read(int(length)), self.headers.get("Authorization", "")))

    def _pass_over(self, left: int) -> None:
        """Reads what nobody wants: a client that is still sending would see a reset and not the answer."""
        while left > 0 and (part := self.rfile.read(min(left, 65536))):
            left -= len(part)

    def do_GET(self) -> None:
        if self.path.split("?", 1)[0] != "/healthz":
            return self._answer(HTTPStatus.NOT_FOUND, "GET /healthz")
        return self._answer(
            HTTPStatus.OK, f"{self.notify.waiting()} incidents waiting, {self.notify.given_up} deliveries given up"
        )

    def _answer(self, status: HTTPStatus, text: str) -> None:
        body = f"{text}\n".encode()
        self.send_response(status)
        self.send_header("Content-Type", "text/plain; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        log.debug(format, *args)
