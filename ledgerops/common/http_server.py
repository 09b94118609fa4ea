"""An HTTP server for a process that has other work: bounded threads, memory and time, TLS and credentials.

A client that is slow to send its request, or far too slow to take its answer, is cut off for another; a client for
which there is no room gets a 503. Both are counted.
"""

import contextlib
import errno
import gzip
import ipaddress
import math
import socket
import socketserver
import ssl
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from http.server import HTTPServer
from queue import SimpleQueue
from typing import Any

from ledgerops.common.credentials import Reread
from ledgerops.common.http_access import Access
from ledgerops.common.http_handler import Answer, Handler, Request, problem

THREAD_NAME = "ledgerops-http"
MAX_REQUESTS = 32  # at a time, each on a thread of its own, which is kept: a new one costs as much as a small answer
MAX_REQUESTS_PER_ADDRESS = 24  # the rest is left to others
REQUEST_SECONDS = 10.0  # after which a request is cut off, even if it still trickles in, and an answer for another
ANSWER_SECONDS = 120.0  # after which every answer is: a recording has megabytes, which a slow line takes minutes for
SPARED_SECONDS = 0.25  # in which a new connection is not cut off for a newer one
ROOM_SECONDS = 0.2  # how long a request waits for the place of one that was cut off
EXHAUSTED = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)  # no file descriptors, or no memory
ACCEPT_AGAIN_SECONDS = 0.2  # until the next try then; the connection waits in the system's queue
LARGE_BYTES = 1_000_000  # answers up to this size are sent whatever else is
MAX_BYTES = 32 * 1024 * 1024  # of large answers that are being sent: clients may be slow to read
MAX_BYTES_PER_ADDRESS = 16 * 1024 * 1024  # the rest is left to others
MIN_PACKED_BYTES = 1024  # smaller answers are not worth compressing


@dataclass(slots=True, eq=False)
class Connection:
    """A connection that has a place and a thread."""

    socket: Any
    address: str
    began: float  # by the monotonic clock; never for one that was cut: once is enough
    asked: bool = False  # whether its request has come in whole
    large_bytes: int = 0  # of its answer before compression, where it is a large one


class Server(HTTPServer):
    """Answers with `answer(request)`. Raises OSError when the address is taken.

    `refused` is called with the reason for each request that is turned away or cut. POST is taken where
    `max_body_bytes` is above 0. `problem` makes the answer to what is refused here.
    """

    request_queue_size = 128

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
        problem: Callable[[HTTPStatus, str], Answer] = problem,
    ) -> None:
        self.access, self.refused, self.secure = access, refused, secure
        self.max_body_bytes, self.problem = max_body_bytes, problem
        self._answer, self._max_per_address = answer, max_per_address
        self._places, self._sending = threading.BoundedSemaphore(max_requests), threading.Lock()
        self._open: dict[Any, Connection] = {}
        self._accepted: SimpleQueue[tuple[Any, Any] | None] = SimpleQueue()  # None ends a thread
        self._threads, self._idle = 0, threading.Semaphore(0)
        self._newest_packed = Answer(b""), Answer(b"")
        if ":" in address[0]:
            self.address_family = socket.AF_INET6
        super().__init__(address, Handler)

    def close_inherited(self) -> None:
        """In a forked child: closes its copies of the sockets, which the parent keeps using."""
        self.socket.close()
        for request in list(self._open):
            request.close()

    def shutdown(self) -> None:
        """Ends `serve_forever` at once: it looks twice a second, which is seldom enough to cost nothing."""
        with contextlib.suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)  # wakes the thread that accepts
        super().shutdown()

    def server_close(self) -> None:
        """Stops listening, and ends each thread after its request. May be called twice."""
        super().server_close()
        for _ in range(self._threads):
            self._accepted.put(None)

    def server_bind(self) -> None:
        """Without the look-up of the host's name that HTTPServer does: it may hang for seconds."""
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = str(self.server_address[0]), self.server_address[1]

    def finish_answers(self, seconds: float) -> None:
        """Waits until what was asked is answered, at most that long: the end of the process would cut it off."""
        end = time.monotonic() + seconds
        while any(each.asked for each in list(self._open.values())) and time.monotonic() < end:
            time.sleep(0.01)

    def get_request(self) -> tuple[socket.socket, Any]:
        """The accepted socket, wrapped in TLS where that is configured, and the client's address. Raises OSError."""
        try:
            request, address = super().get_request()
            if self.secure is not None:
                request = self.secure.current().wrap_socket(request, server_side=True, do_handshake_on_connect=False)
            return request, address
        except Exception as error:
            if not isinstance(error, OSError) or error.errno in EXHAUSTED:
                time.sleep(ACCEPT_AGAIN_SECONDS)  # asking again at once would take a whole core for as long
            raise OSError("cannot accept") from error  # any other error would end the thread that accepts

    def process_request(self, request: Any, client_address: Any) -> None:
        """Starts a thread for the request. Without room, the slowest other client is cut off or this one is refused."""
        address = network(client_address[0])
        reason = self._without_place(address)
        if reason is not None:
            self._turn_away(request, reason)
            return
        self._open[request] = Connection(request, address, time.monotonic())
        try:
            if not self._idle.acquire(blocking=False):
                threading.Thread(target=self._work, name=THREAD_NAME, daemon=True).start()
                self._threads += 1
        except (RuntimeError, MemoryError):  # no more threads
            self._release(request)
            self._turn_away(request, "threads")
        else:
            self._accepted.put((request, client_address))

    def _work(self) -> None:
        """Handles one request after the other, until the server closes."""
        while (accepted := self._accepted.get()) is not None:
            try:
                self.finish_request(*accepted)
            except Exception:
                self.handle_error(*accepted)
            finally:
                self.shutdown_request(accepted[0])
            # in this order: whoever finds a place finds an idle thread, so there are never more threads than places
            self._idle.release()
            self._release(accepted[0])

    def request_is_in(self, request: Any) -> None:
        """Called once a request has come in whole: from now on it has time for its answer."""
        connection = self._open.get(request)
        if connection is not None:
            connection.asked = True

    def respond(self, request: Any, asked: Request) -> Answer:
        """The answer to what a connection has asked, which is allowed."""
        answer = self._answer(asked)
        if len(answer.body) > LARGE_BYTES and (full := self._without_memory(self._open[request], len(answer.body))):
            self._cut_late(full, REQUEST_SECONDS)
            self.refused("busy")
            return self.problem(HTTPStatus.SERVICE_UNAVAILABLE, "too much is being sent; try again")
        return self._packed(answer) if asked.gzip and len(answer.body) >= MIN_PACKED_BYTES else answer

    def service_actions(self) -> None:
        """Cuts what has taken too long."""
        self._cut_late(list(self._open.values()), ANSWER_SECONDS)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A broken connection is the client's problem: nothing is written to the job's output."""

    def _packed(self, answer: Answer) -> Answer:
        """The answer in gzip; that of a small one is kept for the next request, which may have the same answer."""
        plain, packed = self._newest_packed
        if plain is answer:
            return packed
        packed = answer._replace(body=gzip.compress(answer.body, 1), packed=True)  # level 9 takes twenty times as long
        if len(answer.body) <= LARGE_BYTES:
            self._newest_packed = answer, packed
        return packed

    def _without_memory(self, asking: Connection, size: int) -> Sequence[Connection]:
        """Counts a large answer as being sent, unless too much already is: then those that get it, of which some must
        end first. A single one may have any size."""
        with self._sending:
            large = [each for each in list(self._open.values()) if each.large_bytes]
            of_address = [each for each in large if each.address == asking.address]
            for taking, limit in ((of_address, MAX_BYTES_PER_ADDRESS), (large, MAX_BYTES)):
                if taking and sum(each.large_bytes for each in taking) + size > limit:
                    return taking
            asking.large_bytes = size
            return ()

    def _without_place(self, address: str) -> str | None:
        """Takes a place for a request, if need be that of the slowest to ask; else why there is none."""
        full = sum(each.address == address for each in list(self._open.values())) >= self._max_per_address
        if not full and self._places.acquire(blocking=False):
            return None
        if self._cut_slowest(address if full else None) and self._places.acquire(timeout=ROOM_SECONDS):
            return None
        return "address" if full else "busy"

    def _cut_late(self, connections: Sequence[Connection], answer_seconds: float) -> None:
        now = time.monotonic()
        for connection in connections:
            if connection.began < now - (answer_seconds if connection.asked else REQUEST_SECONDS):
                self._cut(connection)

    def _cut_slowest(self, address: str | None) -> bool:
        """Cuts the oldest connection that has not asked yet, else the oldest whose answer has taken REQUEST_SECONDS, of
        an address where it is given; False without one."""
        now = time.monotonic()
        slow = [
            each
            for each in list(self._open.values())
            if each.began < now - (REQUEST_SECONDS if each.asked else SPARED_SECONDS)
            and address in (None, each.address)
        ]
        if not slow:
            return False
        self._cut(min(slow, key=lambda connection: (connection.asked, connection.began)))
        return True

    def _cut(self, connection: Connection) -> None:
        connection.began = math.inf
        self.refused("slow")
        try:
            connection.socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass

    def _turn_away(self, request: Any, reason: str) -> None:
        """Answers 503, as far as that is possible without waiting; a TLS client would have to shake hands first."""
        self.refused(reason)
        try:
            if self.secure is None:
                request.setblocking(False)
                request.send(_refusal(self.problem))
                request.recv(65_536)  # what is left unread would reset the connection and lose the answer
        except OSError:
            pass
        self.shutdown_request(request)

    def _release(self, request: Any) -> None:
        if self._open.pop(request, None) is not None:
            self._places.release()


def network(host: str) -> str:
    """What counts as one address: the address of a client itself, of IPv6 its /64, which one machine has whole."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host
    if address.version == 4 or address.ipv4_mapped:  # the latter at a socket of both kinds
        return host
    return str(ipaddress.IPv6Address(int(address) >> 64 << 64))


def _refusal(problem: Callable[[HTTPStatus, str], Answer]) -> bytes:
    """The whole answer to a request for which there is no room."""
    answer = problem(HTTPStatus.SERVICE_UNAVAILABLE, "too many requests at the same time; try again")
    head = f"HTTP/1.1 503 Service Unavailable\r\nContent-Type: {answer.kind}\r\nContent-Length: {len(answer.body)}\r\n"
    return f"{head}Retry-After: 1\r\nConnection: close\r\n\r\n".encode() + answer.body
