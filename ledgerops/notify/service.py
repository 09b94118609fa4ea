"""The service: takes webhooks, keeps them on disk, and sends them one by one from a thread of its own.

The webhook is answered once the incident is on disk. A sender that fails is tried again with growing waits; the others
are not asked twice. When the diagnosis does not come, the alert goes out without it.
"""

from __future__ import annotations

import hmac
import json
import logging
import sqlite3
import threading
import time
from collections.abc import Callable, Mapping, Sequence
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

MOST_BYTES = 1024 * 1024  # of a webhook: 50 alerts are some 50 kB
QUIET_SECONDS = 10.0


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
        self._wake, self._stop = threading.Event(), threading.Event()
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
            threading.Thread(target=self._work, name="notify-send", daemon=True),
        ]

    @property
    def url(self) -> str:
        host, port = self._server.server_address[:2]
        return f"http://{host!s}:{port}"

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def close(self) -> None:
        self._stop.set()
        self._wake.set()
        self._server.shutdown()
        self._server.server_close()
        self._threads[1].join(timeout=30)
        self._spool.close()

    def accept(self, body: bytes, authorization: str) -> tuple[HTTPStatus, str]:
        """What a POST is answered with."""
        if self._token and not hmac.compare_digest(authorization.encode(), f"Bearer {self._token}".encode()):
            return HTTPStatus.UNAUTHORIZED, "the bearer token is missing or wrong"
        try:
            payload = json.loads(body)
            incident = parse_webhook(payload)
        except (UserError, ValueError, RecursionError) as error:
            return HTTPStatus.BAD_REQUEST, str(error)[:300]
        try:
            new = self._spool.put(incident.identity, incident.group, incident.worst.severity, payload, self._clock())
        except (OverflowError, sqlite3.Error) as error:
            return HTTPStatus.SERVICE_UNAVAILABLE, str(error)
        self._wake.set()
        return HTTPStatus.OK, "taken" if new else "known already"

    def waiting(self) -> int:
        return len(self._spool)

    def _work(self) -> None:
        while not self._stop.is_set():
            self._wake.clear()
            try:
                waiting = self._spool.due(self._clock())
                if waiting is not None:
                    self._attempt(waiting)
                    continue
            except Exception as error:  # a full disk, say: nothing may end this thread, an alert would wait for ever
                log.warning("the queue: %s: %s", type(error).__name__, error)
            self._wake.wait(1.0)

    def _attempt(self, waiting: Waiting) -> None:
        try:
            self._deliver(waiting)
        except Exception as error:
            log.exception("incident %d: %s", waiting.number, type(error).__name__)
            self._spool.again(waiting.number, waiting.attempts, waiting.delivered, self._clock())

    def _deliver(self, waiting: Waiting) -> None:
        incident = parse_webhook(waiting.payload)
        found = self._lookup.diagnose(incident.query, incident.job) if incident.query else Found(None)
        before = self._spool.recall(incident.group) if incident.status == "resolved" else None
        if incident.status == "firing" and found.diagnosis is not None:
            self._spool.remember(incident.group, found.diagnosis, self._clock())
        message = self._message(incident, found, before)
        delivered = list(waiting.delivered)
        for sender in self._senders:
            if sender.name in delivered:
                continue
            try:
                sender.send(message)
                delivered.append(sender.name)
            except Exception as error:  # whatever a service throws, the others must be asked
                log.warning("%s has not taken incident %d (%s)", sender.name, waiting.number, type(error).__name__)
        if all(sender.name in delivered for sender in self._senders):
            self._spool.done(waiting.number, self._clock())
        else:
            if before is not None:
                self._spool.remember(incident.group, before, self._clock())
            wait = self._spool.again(waiting.number, waiting.attempts, tuple(delivered), self._clock())
            log.warning("incident %d is sent again in %.0f s", waiting.number, wait)

    def _message(self, incident: Incident, found: Found, before: Mapping[str, Any] | None) -> Message:
        """With what the driver said, if that makes sense."""
        try:
            return compose(incident, found.diagnosis, self._clock(), found.trouble, before)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            log.warning("a diagnosis that makes no sense (%s)", type(error).__name__)
            return compose(incident, None, self._clock(), "the driver's answer makes no sense")


class _Handler(BaseHTTPRequestHandler):
    notify: Service
    timeout = QUIET_SECONDS
    server_version, sys_version = "ledgerops", ""

    def do_POST(self) -> None:
        if self.path.split("?", 1)[0] != "/alerts":
            return self._answer(HTTPStatus.NOT_FOUND, "POST goes to /alerts")
        length = self.headers.get("Content-Length", "")
        if not length.isdecimal():
            return self._answer(HTTPStatus.LENGTH_REQUIRED, "Content-Length is missing")
        if int(length) > MOST_BYTES:
            self._pass_over(min(int(length), 4 * MOST_BYTES))
            return self._answer(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"at most {MOST_BYTES} bytes")
        return self._answer(*self.notify.accept(self.rfile.read(int(length)), self.headers.get("Authorization", "")))

    def _pass_over(self, left: int) -> None:
        """Reads what nobody wants: a client that is still sending would see a reset and not the answer."""
        while left > 0 and (part := self.rfile.read(min(left, 65536))):
            left -= len(part)

    def do_GET(self) -> None:
        if self.path.split("?", 1)[0] != "/healthz":
            return self._answer(HTTPStatus.NOT_FOUND, "GET goes to /healthz")
        return self._answer(HTTPStatus.OK, f"{self.notify.waiting()} incidents wait")

    def _answer(self, status: HTTPStatus, text: str) -> None:
        body = f"{text}\n".encode()
        self.send_response(status)
        self.send_header("Content-Type", "text/plain; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        log.debug(format, *args)
