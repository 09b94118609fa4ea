"""One load sent by several senders, each a process of its own, that begin and end together.

A conductor gives each member its share, waits until all have reached the target, and lets them begin at one instant.
To stop, they pause, report their position, and continue to one record that none of them has passed: so
the records below it were sent and no other, at any moment. The transport is not defined here: a pipe
(`processes`), or locust's own connection (load/locustfile.py).

To a member: order, begin, pause, limit. From it: ready, said, books, position, done, failed (see `member`).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import asdict
from typing import Any

from ledgerops.load.generator.accounting import SentCounts, together
from ledgerops.load.generator.latency_samples import histogram
from ledgerops.load.generator.request import LoadRequest

LEAD_SECONDS = 0.5  # seconds between the message to begin and the start: all members have received it by then


class Coordinator:
    """Of all members; `send(member, kind, data)` reaches one. Members are named by the transport."""

    def __init__(
        self,
        order: LoadRequest,
        members: Sequence[Hashable],
        send: Callable[[Any, str, Any], None],
        say: Callable[[str], None] = lambda text: None,
    ) -> None:
        self.order = order
        self.books: dict[Hashable, SentCounts] = {}  # the latest of each member
        self.failure: str | None = None  # why a member could not begin
        self.begun = False
        self._members, self._send, self._say = list(members), send, say
        self._ready: set[Hashable] = set()
        self._positions: dict[Hashable, int] = {}
        self._done: dict[Hashable, dict[str, str]] = {}  # histograms, encoded, by leg
        self._lost: set[Hashable] = set()
        self._stopping = False

    def start(self) -> None:
        """Sends each member the order and its share. The load begins when all of them have reported ready."""
        for number, member in enumerate(self._members):
            self._send(member, "order", {"order": asdict(self.order), "share": [number, len(self._members)]})

    def heard(self, member: Hashable, kind: str, data: Any) -> None:
        """Handles one message from a member: said, ready, books, position, done or failed. Ignores unknown members."""
        if member not in self._members:
            return
        if kind == "said":
            self._say(data)
        elif kind == "ready":
            self._ready.add(member)
            if len(self._ready) == len(self._members) and not self._stopping:
                self._begin()
        elif kind == "books":
            self.books[member] = SentCounts.read(data)
        elif kind == "position":
            self._positions[member] = data
            self._agree()
        elif kind == "done":
            self._done[member] = data["legs"]
            self.books[member] = SentCounts.read(data["sent"])
            self._agree()
        elif kind == "failed":
            self.failure = self.failure or data
            self._lost.add(member)

    def lost(self, member: Hashable) -> None:
        """A member is gone, and what it sent is not known."""
        if member in self._members and member not in self._done:
            self._lost.add(member)
            if not self.begun and not self._stopping:
                self.failure = self.failure or "a sender stopped before it could start"
            self._agree()

    def stop(self) -> None:
        """Ends the load at a record that no member has passed."""
        if self._stopping:
            return
        self._stopping = True
        for member in self._left:
            self._send(member, "pause", None)

    @property
    def over(self) -> bool:
        """Whether nothing is to be expected any more."""
        return not self._left or self.failure is not None or (self._stopping and not self.begun)

    @property
    def members(self) -> tuple[Hashable, ...]:
        """In the order of their shares."""
        return tuple(self._members)

    def number(self, member: Hashable) -> int:
        """Of its share."""
        return self._members.index(member)

    def result(self) -> SentCounts:
        """The counts of all members, added up. Not exact if a member is lost or they did not end together."""
        parts = [self.books[member] for member in self._members if member in self._done]
        whole = together(parts)
        missing = len(self._members) - len(parts)
        if missing and self.begun:
            whole.problem = (
                f"{missing} of {len(self._members)} senders stopped without a report, so it is not known what they sent"
            )
        elif len({part.records for part in parts}) > 1:
            whole.problem = whole.problem or "the senders did not stop at the same record"
        return whole

    def legs(self) -> dict[str, Any]:
        """The histograms of all samples."""
        found: dict[str, list[str]] = {}
        for legs in self._done.values():
            for name, encoded in legs.items():
                found.setdefault(name, []).append(encoded)
        return {name: histogram(each) for name, each in found.items()}

    @property
    def _left(self) -> list[Hashable]:
        return [member for member in self._members if member not in self._done and member not in self._lost]

    def _begin(self) -> None:
        self.begun = True
        self.order = self.order.begins(LEAD_SECONDS)
        for member in self._members:
            self._send(member, "begin", {"origin": self.order.origin})

    def _agree(self) -> None:
        waiting = [member for member in self._left if member not in self._positions]
        if self._stopping and not waiting and self._positions:
            furthest = max([*self._positions.values(), *(self.books[each].records for each in self._done)])
            for member in self._left:
                self._send(member, "limit", furthest)
