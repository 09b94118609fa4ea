"""The service: accepts webhooks, keeps them on disk, and sends them, with a thread for each sender.

The webhook is answered once the incident is on disk. A delivery that fails is retried with growing waits, and delays no
other sender. If no diagnosis arrives in time, the alert is sent without one.
"""

import json
import logging
import sqlite3
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from http import HTTPStatus
from typing import Any

from ledgerops.common.deadline import OneAtATime
from ledgerops.common.http_access import Access, Rules, tls_contexts
from ledgerops.common.http_handler import Answer, Request
from ledgerops.common.http_server import Server
from ledgerops.config import web_address
from ledgerops.errors import UserError, os_reason
from ledgerops.notify.incident import Firing, Incident, parse_webhook, without_ended
from ledgerops.notify.lookup import Lookup
from ledgerops.notify.message import MAX_SUBJECTS, Message, compose, compose_checked
from ledgerops.notify.metrics import Counts
from ledgerops.notify.outcome import outcome
from ledgerops.notify.senders import Sender
from ledgerops.notify.spool import MAX_ROWS, Spool, Waiting
from ledgerops.notify.updates import began, next_told
from ledgerops.runtime.exposition import accepted

log = logging.getLogger("ledgerops.notify")

MAX_BYTES = 8 * 1024 * 1024  # of a webhook: 500 alerts take about 1.2 MB
MAX_REQUESTS = 16  # at a time; Alertmanager sends the groups of a storm side by side, and repeats what is refused
MESSAGE_SECONDS = 60.0  # for which senders share a message, and the diagnosis in it
DIAGNOSIS_SECONDS = 15.0  # after its incident was accepted, a message goes out without a diagnosis
SEND_SECONDS = 60.0  # for one delivery
MAX_LOOKUPS = 16  # messages that are written at the same time, each waiting for drivers
TEXT = "text/plain; charset=utf-8"
RISK = "anyone who reaches it can send messages to your senders; set --token-file or --tls-client-ca"


def steady_clock() -> Callable[[], float]:
    """Epoch seconds as of now that go on with the monotonic clock: setting the machine's clock delays no delivery."""
    offset = time.time() - time.monotonic()
    return lambda: offset + time.monotonic()


class Service:
    """`serve` binds, `close` ends; what waits then waits on disk."""

    def __init__(
        self,
        spool: Spool,
        lookup: Lookup,
        senders: Sequence[Sender],
        *,
        rules: Rules | None = None,
        port: int = 0,
        clock: Callable[[], float] | None = None,
    ) -> None:
        self._spool, self._lookup, self._senders = spool, lookup, senders
        self._clock = clock or steady_clock()
        self._wake = {sender.name: threading.Event() for sender in senders}
        self._stop = threading.Event()
        self._messages: dict[str, tuple[float, Future[Message]]] = {}  # incident -> since when, its message
        self._composing = threading.Lock()
        # one webhook after the other, as the queue takes them: each takes many times its size of memory
        self._accepting = threading.Lock()
        self._pool = ThreadPoolExecutor(MAX_LOOKUPS, thread_name_prefix="notify-compose")
        self._deliveries = {sender.name: OneAtATime(f"notify-send {sender.name}") for sender in senders}
        self.counts = Counts()
        self._server, self._secure = self._listen(rules or Rules(host="127.0.0.1"), port)
        self._http = threading.Thread(target=self._server.serve_forever, name="notify-http", daemon=True)
        self._workers = [
            threading.Thread(target=self._work, args=(sender,), name=f"notify {sender.name}", daemon=True)
            for sender in senders
        ]

    def _listen(self, rules: Rules, port: int) -> tuple[Server, bool]:
        """The server, and whether it speaks https. Raises UserError when it cannot have the port."""
        secure, access = tls_contexts(rules), Access(rules, RISK)
        try:
            server = Server(
                (rules.host, port),
                self.answer,
                access,
                lambda reason: self.counts.add("refused_total", reason),
                secure,
                max_body_bytes=MAX_BYTES,
                max_requests=MAX_REQUESTS,
                max_per_address=MAX_REQUESTS - 4,  # the alerts of a fleet come from one Alertmanager
                problem=_text,
            )
        except OSError as error:
            raise UserError(f"cannot listen on {rules.host}:{port}: {os_reason(error)}") from None
        return server, bool(secure)

    @property
    def url(self) -> str:
        """The address on which it listens, such as http://127.0.0.1:9465, without a path."""
        host, port = self._server.server_address[:2]
        return web_address(self._secure, str(host), port)

    def start(self) -> None:
        """Begins to accept webhooks and to send, on daemon threads. Call it once."""
        for thread in (self._http, *self._workers):
            thread.start()

    def close(self) -> None:
        """Stops accepting, waits up to 30 s for deliveries under way, and closes the queue. Works without `start`."""
        self._stop.set()
        for wake in self._wake.values():
            wake.set()
        if self._http.is_alive():
            self._server.shutdown()
        self._server.server_close()
        end = time.monotonic() + 30.0
        for thread in self._workers:
            if thread.is_alive():
                thread.join(timeout=max(0.0, end - time.monotonic()))
        for delivery in self._deliveries.values():
            delivery.close()
        self._pool.shutdown(wait=False, cancel_futures=True)
        self._spool.close()

    def answer(self, request: Request) -> Answer:
        """The answer to a request that was let in."""
        path = request.target.split("?", 1)[0]
        if request.method == "POST":
            if path == "/alerts":
                return _text(*self.accept(request.body))
            return _text(HTTPStatus.NOT_FOUND, "POST to /alerts")
        if path == "/healthz":
            given_up = sum(self.counts.of("given_up_total", each.name) for each in self._senders)
            return _text(HTTPStatus.OK, f"{self.waiting()} incidents waiting, {given_up:g} deliveries given up")
        if path == "/metrics":
            kind = accepted(request.accept)
            return Answer(self.counts.page(self._spool.backlog(self._clock()), kind), kind)
        return _text(HTTPStatus.NOT_FOUND, "GET /healthz or /metrics")

    def accept(self, body: bytes) -> tuple[HTTPStatus, str]:
        """What a webhook of Alertmanager is answered with."""
        with self._accepting:
            status, text, incident = self._store(body)
        if status is not HTTPStatus.BAD_REQUEST:  # a full queue of one sender, too: the others have taken it
            for wake in self._wake.values():
                wake.set()
        if incident is not None:
            self.counts.add("accepted_total")
            if incident.of_queries:
                self._message(incident.identity, incident)  # the diagnoses of all incidents are looked up together
        return status, text

    def _store(self, body: bytes) -> tuple[HTTPStatus, str, Incident | None]:
        """Puts the incident of a webhook into the queue: the answer, and the incident if it is new."""
        try:
            payload = json.loads(body)
            json.dumps(payload, ensure_ascii=False).encode()  # half of a surrogate pair could never be sent
            incident = parse_webhook(payload)
        except (UserError, ValueError, TypeError, OverflowError, RecursionError) as error:
            return HTTPStatus.BAD_REQUEST, str(error).encode("utf-8", "replace").decode()[:300], None
        try:
            now = self._clock()
            before = self._spool.told(incident.group)
            payload = without_ended(payload, began(incident, before))
            incident = parse_webhook(payload)
            told = next_told(incident, before, now)
            if told is None:
                return HTTPStatus.OK, "nothing new", None
            new = self._spool.put(incident.identity, incident.group, incident.worst.severity, payload, now, told)
        except (OverflowError, sqlite3.Error) as error:
            self.counts.add("refused_total", "queue")
            return HTTPStatus.SERVICE_UNAVAILABLE, str(error), None
        return HTTPStatus.OK, "accepted" if new else "nothing new", incident if new else None

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
                    self._prepare(sender, waiting)
                    self._deliver(sender, waiting)
                    continue
            except Exception as error:  # a full disk, say: this thread must go on, or no alert would ever be sent
                log.warning("the queue: %s: %s", type(error).__name__, error)
            wake.wait(1.0)

    def _prepare(self, sender: Sender, waiting: Waiting) -> None:
        """Begins to write the next messages together, unless that of this incident is being written already."""
        if waiting.identity in self._messages:
            return
        for each in self._spool.ahead(sender.name, self._clock(), MAX_LOOKUPS):
            try:
                self._message(each.identity, parse_webhook(each.payload))
            except UserError:  # of an older version: its own delivery says so
                continue

    def _deliver(self, sender: Sender, waiting: Waiting) -> None:
        try:
            message = self._composed(waiting.identity, parse_webhook(waiting.payload))
            self._deliveries[sender.name].within(lambda: sender.send(message), SEND_SECONDS)
        except Exception as error:  # whatever a service raises: its queue goes on
            self.counts.add("failed_total", sender.name)
            wait = self._spool.again(sender.name, waiting.number, self._clock())
            if wait is None:
                self.counts.add("given_up_total", sender.name)
                log.error("%s gave up on incident %d: it is too old", sender.name, waiting.number)
            else:
                log.warning(
                    "%s did not deliver incident %d (%s); next attempt in %.0f s",
                    sender.name, waiting.number, type(error).__name__, wait,
                )  # fmt: skip
        else:
            self.counts.deliver(sender.name)
            self._spool.done(sender.name, waiting.number, self._clock())

    def _composed(self, identity: str, incident: Incident) -> Message:
        """The message, without a diagnosis when that takes too long."""
        since, message = self._message(identity, incident)
        try:
            return message.result(max(0.0, since + DIAGNOSIS_SECONDS - time.monotonic()))
        except TimeoutError:
            self.counts.add("without_diagnosis_total")
            return compose(incident, {}, time.time(), "its lookup did not end in time")

    def _message(self, identity: str, incident: Incident) -> tuple[float, Future[Message]]:
        """Since when the message of an incident is being written, and the message; all senders share it."""
        with self._composing:
            found = self._messages.get(identity)
            if found is None or time.monotonic() - found[0] > MESSAGE_SECONDS:
                self._messages.pop(identity, None)
                while len(self._messages) >= MAX_ROWS:
                    del self._messages[next(iter(self._messages))]
                found = self._messages[identity] = time.monotonic(), self._pool.submit(self._compose, incident)
            return found

    def _compose(self, incident: Incident) -> Message:
        queries = incident.of_queries[:MAX_SUBJECTS]
        end = time.monotonic() + self._lookup.seconds
        diagnoses, trouble = self._diagnoses(incident.job, queries, end)
        over = incident.status == "resolved"
        before = self._spool.recall(incident.group) if over else {}
        outcomes = self._outcomes(incident, diagnoses, end) if over else {}
        message, error = compose_checked(incident, diagnoses, time.time(), trouble, before, outcomes)
        if error is not None:
            log.warning("invalid diagnosis (%s)", type(error).__name__)
            self.counts.add("without_diagnosis_total")
            return message
        if queries and not diagnoses:
            self.counts.add("without_diagnosis_total")
        if diagnoses and not over:
            try:
                self._spool.remember(incident.group, diagnoses)
            except sqlite3.Error as error:  # the alert matters more than what changes until its end
                log.warning("cannot keep the diagnosis: %s", error)
        return message

    def _diagnoses(
        self, job: str, alerts: Sequence[Firing], end: float
    ) -> tuple[dict[str, Mapping[str, Any]], str | None]:
        """The diagnosis of each alert's query, and why the first has none. All together take the time of a lookup."""
        found: dict[str, Mapping[str, Any]] = {}
        trouble = None
        for alert in alerts:
            if time.monotonic() >= end:
                break
            answer = self._lookup.diagnose(alert.query, job, alert.app, end)
            if answer.diagnosis is not None:
                found[alert.about] = answer.diagnosis
            trouble = trouble or answer.trouble
        return found, trouble

    def _outcomes(self, incident: Incident, diagnoses: Mapping[str, Any], end: float) -> dict[str, str]:
        """What became of each query and driver without a diagnosis, where Prometheus says it."""
        alerts = [each for each in incident.alerts[:MAX_SUBJECTS] if each.about not in diagnoses]
        known = {app: self._lookup.runs(incident.job, app, end) for app in {each.app for each in alerts}}
        told = {each.about: outcome(each, runs) for each in alerts if (runs := known[each.app]) is not None}
        return {about: said for about, said in told.items() if said}


def _text(status: HTTPStatus, text: str) -> Answer:
    return Answer(f"{text}\n".encode("utf-8", "replace"), TEXT, status)
