"""How often an address may be answered: a burst, then so many times a second. An answer that takes long counts more."""

from __future__ import annotations

import math
import socket
import time
from collections.abc import Callable

MAX_BURST = 100  # answers that an address may get at once, whatever its rate
CPU_SECONDS_PER_ANSWER = 0.02  # an answer that takes more counts as several
MAX_ADDRESSES = 1000  # for which a rate is kept
MAPPED_IPV4 = bytes(10) + b"\xff\xff"  # prefix of an IPv4 address on a socket that also accepts IPv6


def network(host: str) -> str:
    """What counts as one address: the address of a client itself, of IPv6 its /64, which one machine has whole."""
    if ":" not in host:
        return host
    try:
        packed = socket.inet_pton(socket.AF_INET6, host.partition("%")[0])
    except OSError:
        return host
    if packed.startswith(MAPPED_IPV4):
        return socket.inet_ntop(socket.AF_INET, packed[len(MAPPED_IPV4) :])
    return f"{socket.inet_ntop(socket.AF_INET6, packed[:8] + bytes(8))}/64"


class RateLimit:
    """A bucket for each address. Not for several threads, but for `charge`."""

    def __init__(self, per_second: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._per_second, self._clock = per_second, clock
        self._left: dict[str, tuple[float, float]] = {}  # by address: answers that it may get at once, as of when

    def admit(self, address: str) -> bool:
        """Whether an address may be answered now, which is then counted."""
        if self._per_second == math.inf:
            return True
        now = self._clock()
        left, since = self._left.pop(address, (float(MAX_BURST), now))
        left = min(float(MAX_BURST), left + (now - since) * self._per_second)
        while len(self._left) >= MAX_ADDRESSES:
            del self._left[next(iter(self._left))]  # of the one that asked longest ago
        self._left[address] = (left - 1.0 if left >= 1.0 else left), now
        return left >= 1.0

    def charge(self, address: str, cpu_seconds: float) -> None:
        """Counts what an answer took beyond its share. Losing one to a call of `admit` does no harm."""
        known = self._left.get(address)
        if known is not None and cpu_seconds > CPU_SECONDS_PER_ANSWER:
            left, since = known
            self._left[address] = left - cpu_seconds / CPU_SECONDS_PER_ANSWER + 1.0, since
