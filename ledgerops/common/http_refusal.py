"""The 503 for requests that a server has no room for, at the least cost: no parsing, no thread and no waiting."""

from __future__ import annotations

import select
import socket
import time
from collections import deque
from collections.abc import Callable, Sequence
from http import HTTPStatus
from typing import Any

from ledgerops.common.http_handler import Answer

MAX_LEAVING = 256  # refused connections whose request is still being sent
MAX_UNREAD_BYTES = 65_536  # read from the connection of a refused request
LEAVING_SECONDS = 0.1  # how long such a connection stays open: closing it unread would reset it and lose the answer
AT_ONCE = int(getattr(socket, "MSG_DONTWAIT", 0))  # where the system knows it; elsewhere the socket is set so
AT_ONCE_WITH_END = AT_ONCE | int(getattr(socket, "MSG_MORE", 0))  # in one packet with the end of the connection
ENDED_BY_PEER = getattr(select, "POLLRDHUP", 0)  # where the system knows it


def ended(requests: Sequence[Any]) -> set[int]:
    """The descriptors of connections that their clients have ended, as after a timeout; empty where it is unknown."""
    if not requests or not ENDED_BY_PEER:
        return set()
    poller = select.poll()
    for request in requests:
        poller.register(request, ENDED_BY_PEER)
    return {descriptor for descriptor, _ in poller.poll(0)}


class Refusals:
    """Answers 503 and closes connections. Not for several threads."""

    def __init__(self, problem: Callable[[HTTPStatus, str], Answer]) -> None:
        self._answer = _refusal(problem)
        self._unread = bytearray(MAX_UNREAD_BYTES)  # never read
        self._leaving: deque[tuple[float, Any]] = deque()  # refused connections, and until when they stay open

    def refuse(self, request: Any) -> None:
        """Answers as far as that is possible without waiting, and closes the connection, now or later."""
        try:
            if not AT_ONCE:
                request.setblocking(False)
            request.send(self._answer, AT_ONCE_WITH_END)
            if not self._has_come(request):
                request.shutdown(socket.SHUT_WR)
                if len(self._leaving) >= MAX_LEAVING:
                    self._leave(self._leaving.popleft()[1])
                self._leaving.append((time.monotonic() + LEAVING_SECONDS, request))
                return
        except OSError:
            pass
        request.close()

    def close_due(self, now: float) -> None:
        """Closes the connections whose request has had its time to come in; `now` is by the monotonic clock."""
        while self._leaving and self._leaving[0][0] <= now:
            self._leave(self._leaving.popleft()[1])

    def waiting(self) -> list[Any]:
        """The refused connections that are still open."""
        return [request for _, request in self._leaving]

    def close(self) -> None:
        """Closes all of them."""
        self.close_due(float("inf"))

    def _has_come(self, request: Any) -> bool:
        """Takes what has come of a refused request; False if nothing has. Raises OSError."""
        try:
            request.recv_into(self._unread, 0, AT_ONCE)
        except BlockingIOError:
            return False
        return True

    def _leave(self, request: Any) -> None:
        """Closes a refused connection: what is unread would become a bare reset."""
        try:
            self._has_come(request)
        except OSError:
            pass
        request.close()


def _refusal(problem: Callable[[HTTPStatus, str], Answer]) -> bytes:
    """The whole answer to a request for which there is no room."""
    answer = problem(HTTPStatus.SERVICE_UNAVAILABLE, "too many requests at the same time; try again")
    size = len(answer.body)
    head = f"HTTP/1.1 503 Service Unavailable\r\nContent-Type: {answer.kind}\r\nContent-Length: {size}\r\n"
    return f"{head}Retry-After: 1\r\nConnection: close\r\n\r\n".encode() + answer.body
