"""Answers of a server: shared by requests that had to wait, compressed, and bounded in what they take of memory."""

from __future__ import annotations

import gzip
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ledgerops.common.http_handler import Answer, Request

SHARED_SECONDS = 1.0  # how long an answer is shared by requests that had to wait
LARGE_BYTES = 1_000_000  # answers up to this size are sent whatever else is, and kept for sharing
MAX_BYTES = 32 * 1024 * 1024  # of large answers that are being sent
MAX_BYTES_PER_ADDRESS = 16 * 1024 * 1024  # the rest is left to others
MIN_PACKED_BYTES = 1024  # smaller answers are not worth compressing


@dataclass(slots=True)
class Connection:
    """A connection that is being served."""

    address: str
    began: float  # by the monotonic clock
    waited: bool = False  # because its address had sent more than it may
    asked: bool = False  # whether its request has come in whole
    size: int = 0  # of its answer, before compression


class Answers:
    """Makes answers with `answer(request)`. Safe for several threads."""

    def __init__(self, answer: Callable[[Request], Answer]) -> None:
        self._answer = answer
        self._lock, self._sharing = threading.Lock(), threading.Lock()
        self._shared: tuple[float, Request | None, Answer | None] = (0.0, None, None)  # by the monotonic clock

    def make(self, request: Request, asking: Connection, served: Sequence[Connection]) -> Answer | None:
        """The answer as it is to be sent; None where too much is being sent to the connections that are `served`."""
        if not asking.waited:
            return self._made(request, asking, served)
        with self._sharing:
            at, shared, answer = self._shared
            if answer is not None and shared == request and time.monotonic() - at <= SHARED_SECONDS:
                return answer
            began = time.monotonic()
            answer = self._made(request, asking, served)
            if answer is not None and len(answer.body) <= LARGE_BYTES:
                self._shared = began, request, answer
            return answer

    def _made(self, request: Request, asking: Connection, served: Sequence[Connection]) -> Answer | None:
        answer = self._answer(request)
        if not self._has_memory(len(answer.body), asking, served):
            return None
        if request.gzip and len(answer.body) >= MIN_PACKED_BYTES:
            packed = gzip.compress(answer.body, 1)  # level 9 takes twenty times as long for a fifth less
            answer = answer._replace(body=packed, packed=True)
        return answer

    def _has_memory(self, size: int, asking: Connection, served: Sequence[Connection]) -> bool:
        """Counts an answer as being sent, unless it is large and too much already is: clients may be slow to read."""
        with self._lock:
            others = [each for each in served if each.size and each is not asking]
            of_address = [each.size for each in others if each.address == asking.address]
            full = others and sum(each.size for each in others) + size > MAX_BYTES
            if size > LARGE_BYTES and (full or (of_address and sum(of_address) + size > MAX_BYTES_PER_ADDRESS)):
                return False
            asking.size = size
            return True
