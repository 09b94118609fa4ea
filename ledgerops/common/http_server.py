"""The HTTP server under the exporter and notify: a bounded number of threads, each for a bounded time.

A client that is slow to send its request is cut off for another; a client that is refused gets a 503 and is counted.
Requests above the rate of their address wait at almost no cost: answering them would take CPU time from the process.
An address is that of a client; for IPv6 it is the /64.
"""

from __future__ import annotations

import errno
import logging
import math
import socket
import ssl
import threading
import time
from collections import deque
from collections.abc import Callable
from http import HTTPStatus
from http.server import ThreadingHTTPServer
from typing import Any

from ledgerops.common.credentials import Reread
from ledgerops.common.http_access import Access
from ledgerops.common.http_answers import Answers, Connection
from ledgerops.common.http_handler import Answer, Handler, Request, problem
from ledgerops.common.http_refusal import Refusals, ended
from ledgerops.common.rate_limit import RateLimit, network

log = logging.getLogger("ledgerops")

MAX_REQUESTS = 32  # at a time, so that a storm of requests cannot exhaust the process's memory
MAX_REQUESTS_PER_ADDRESS = 24  # the rest is left to others
HEADER_SECONDS = 3.0  # in which a request must be complete
REQUEST_SECONDS = 10.0  # after which a request is cut off, even if it still trickles in
SPARED_SECONDS = 0.25  # in which a new connection is not cut off for a newer one
ROOM_SECONDS = 0.2  # how long a request waits for the slot of one that was cut off
EXHAUSTED = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)  # no file descriptors, or no memory
ACCEPT_AGAIN_SECONDS = 0.2  # until the next try then; the connection waits in the system's queue
PAUSE_SECONDS = 0.2  # after refusing requests, before accepting others: accepting many at once takes less CPU time
ACCEPT_SECONDS = 0.05  # for accepting connections at once, before those that wait or are slow are handled
MAX_PARKED = 32  # requests that wait because their address has sent too many


class Server(ThreadingHTTPServer):
    """Answers with `answer(request)`. Raises OSError when the address is taken.

    `refused` is called with the reason for each request that is turned away or cut. POST is taken where
    `max_body_bytes` is above 0. An address that has used up its burst gets `max_per_second` answers, fewer where they
    take long. `problem` makes the answer to what is refused here.
    """

    daemon_threads = True
    request_queue_size = 4096  # as many as the system allows: they wait here while the server pauses

    def __init__(
        self,
        address: tuple[str, int],
        answer: Callable[[Request], Answer],
        access: Access,
        refused: Callable[[str], None],
        secure: Reread[ssl.SSLContext] | None = None,
        *,
        max_body_bytes: int = 0,
        max_requests: int = MAX_REQUESTS,
        max_per_address: int = MAX_REQUESTS_PER_ADDRESS,
        max_per_second: float = math.inf,
        problem: Callable[[HTTPStatus, str], Answer] = problem,
    ) -> None:
        self.access, self.refused, self.secure = access, refused, secure
        self._answers = Answers(answer)
        self.max_body_bytes, self.problem = max_body_bytes, problem
        self._max_per_address, self._limit = max_per_address, RateLimit(max_per_second)
        self._parked: dict[str, deque[tuple[Any, Any]]] = {}  # by address, the oldest first
        self._refusals = Refusals(problem)
        self._crowded = False  # whether a request has been refused since the last pause
        self._slots = threading.BoundedSemaphore(max_requests)
        self._open: dict[socket.socket, Connection] = {}
        if ":" in address[0]:
            self.address_family = socket.AF_INET6
        super().__init__(address, Handler)
        self.socket.setblocking(False)  # accepted until none is left

    def close_inherited(self) -> None:
        """In a forked child: closes its copies of the sockets, which the parent keeps using."""
        self.socket.close()
        for request in (*self._open, *self._idle()):
            request.close()

    def server_close(self) -> None:
        """Stops listening; who still waits gets no answer. May be called twice."""
        super().server_close()
        for request in self._idle():
            self.shutdown_request(request)
        self._parked.clear()
        self._refusals.close()

    def server_bind(self) -> None:
        """Without the look-up of the host's name that HTTPServer does: it may hang for seconds."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.socket.bind(self.server_address)
        self.server_address = self.socket.getsockname()
        self.server_name, self.server_port = str(self.server_address[0]), self.server_address[1]

    def get_request(self) -> tuple[socket.socket, Any]:
        """The accepted socket, wrapped in TLS where that is configured, and the client's address. Raises OSError."""
        try:
            request, address = super().get_request()
        except OSError as error:
            if error.errno in EXHAUSTED:  # asking again at once would take a whole core for as long
                time.sleep(ACCEPT_AGAIN_SECONDS)
            raise
        if self.secure is not None:
            request = self.secure.current().wrap_socket(request, server_side=True, do_handshake_on_connect=False)
        return request, address

    def _handle_request_noblock(self) -> None:
        """Accepts all connections that wait, one after the other, where the library accepts one for each wake-up."""
        limit = time.monotonic() + ACCEPT_SECONDS
        while time.monotonic() < limit:
            try:
                request, client_address = self.get_request()
            except OSError:  # none waits, or it is gone already
                return
            except Exception:  # a lack of memory, for example, must not end the thread, nor take a whole core
                time.sleep(ACCEPT_AGAIN_SECONDS)
                return
            try:
                self.process_request(request, client_address)
            except Exception:
                self.handle_error(request, client_address)
                self.shutdown_request(request)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Starts a thread for the request, unless its address has sent too many: then it waits, or is refused."""
        address = network(client_address[0])
        if address not in self._parked and self._limit.admit(address):
            self._begin(request, client_address)
        elif sum(map(len, self._parked.values())) < MAX_PARKED:
            self._parked.setdefault(address, deque()).append((request, client_address))
        else:
            self._turn_away(request, "rate")

    def _begin(self, request: Any, client_address: Any, waited: bool = False) -> None:
        """Starts the request's thread. Without room, the slowest other client is cut off or this one is refused."""
        address = network(client_address[0])
        refused = self._no_room(address)
        if refused is not None:
            self._turn_away(request, refused)
            return
        self._open[request] = Connection(address, time.monotonic(), waited)
        try:
            super().process_request(request, client_address)
        except RuntimeError:  # no more threads
            self._release(request)
            self._turn_away(request, "threads")

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Handles the request on its own thread, and makes room for another at the end."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            used = time.thread_time()  # the thread lives for this request alone
            self._limit.charge(network(client_address[0]), used)
            self._release(request)

    def respond(self, connection: Any, request: Request) -> Answer:
        """The answer to a request that has come in whole and is allowed."""
        known = self._open.get(connection) or Connection("", 0.0)  # one that was cut is no longer known
        answer = self._answers.make(request, known, list(self._open.values()))
        if answer is None:
            self.refused("busy")
            return self.problem(HTTPStatus.SERVICE_UNAVAILABLE, "too much is being sent; try again")
        return answer

    def request_is_in(self, request: Any) -> None:
        """Called once a request has come in whole: from now on it is not cut for another."""
        connection = self._open.get(request)
        if connection is not None:
            connection.asked = True

    def service_actions(self) -> None:
        """Does what is due between requests; no error ends the thread that accepts, which would end the server."""
        try:
            if self._crowded:
                self._crowded = False
                time.sleep(PAUSE_SECONDS)
            self._do_what_is_due(time.monotonic())
        except Exception as error:
            log.debug("between requests: %s", error)

    def _do_what_is_due(self, now: float) -> None:
        """Answers what has waited long enough, and cuts what has taken too long."""
        gone = ended([request for waiting in self._parked.values() for request, _ in waiting])
        for address, parked in list(self._parked.items()):
            for each in [each for each in parked if each[0].fileno() in gone]:
                parked.remove(each)
                self._turn_away(each[0], "rate")
            while parked and self._limit.admit(address):
                self._begin(*parked.popleft(), waited=True)
            if not parked:
                del self._parked[address]
        self._refusals.close_due(now)
        for request, connection in list(self._open.items()):
            if now - connection.began > (REQUEST_SECONDS if connection.asked else HEADER_SECONDS):
                self._cut(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A broken connection is the client's problem: nothing is written to the job's output."""

    def _no_room(self, address: str) -> str | None:
        """Takes a place for a request; else why there is none: the one that was slowest to ask is cut for it."""
        of_address = sum(connection.address == address for connection in list(self._open.values()))
        if of_address >= self._max_per_address:
            if not self._cut_slowest(address):
                return "address"
            if self._slots.acquire(timeout=ROOM_SECONDS):
                return None
        if self._slots.acquire(blocking=False):
            return None
        if self._cut_slowest() and self._slots.acquire(timeout=ROOM_SECONDS):
            return None
        return "busy"

    def _cut_slowest(self, address: str | None = None) -> bool:
        """Cuts the oldest connection that has not asked yet, of an address where it is given; False without one."""
        limit = time.monotonic() - SPARED_SECONDS
        waiting = [
            (connection.began, request)
            for request, connection in list(self._open.items())
            if not connection.asked and connection.began < limit and address in (None, connection.address)
        ]
        if not waiting:
            return False
        self._cut(min(waiting, key=lambda each: each[0])[1])
        return True

    def _cut(self, request: socket.socket) -> None:
        connection = self._open.get(request)
        if connection is None or connection.began == float("inf"):
            return
        connection.asked, connection.began = True, float("inf")  # once is enough
        self.refused("slow")
        try:
            request.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass

    def _turn_away(self, request: Any, reason: str) -> None:
        """Answers 503, as far as that is possible without waiting."""
        self._crowded = True
        self.refused(reason)
        if self.secure is not None:  # a TLS client would have to shake hands first
            self.shutdown_request(request)
            return
        self._refusals.refuse(request)

    def _idle(self) -> list[Any]:
        """The connections without a thread."""
        parked = [request for waiting in self._parked.values() for request, _ in waiting]
        return [*parked, *self._refusals.waiting()]

    def _release(self, request: Any) -> None:
        if self._open.pop(request, None) is not None:
            self._slots.release()
