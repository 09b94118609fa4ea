"""One load sent by several senders, each a process of its own, that begin and end together.

A coordinator gives each sender its share, waits until all have reached the target, and lets them begin at one instant.
To stop, they pause, report their position, and continue to one record that none of them has passed: so
the records below it were sent and no other, at any moment. The transport is not defined here: a pipe
(`local_senders`), or locust's own connection (load/locustfile.py).

To a sender: request, begin, pause, limit. From it: ready, message, counts, position, done, failed (see `sender`).
"""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import asdict
from typing import Any

from ledgerops.load.generator.accounting import SentCounts, add_up
from ledgerops.load.generator.latency_samples import histogram
from ledgerops.load.generator.request import LoadRequest

LEAD_SECONDS = 0.5  # from the message to begin to the start: all senders have received it by then


class Coordinator:
    """Coordinates the senders of one load. `send(sender, kind, data)` reaches one; the transport names them."""

    def __init__(
        self,
        request: LoadRequest,
        senders: Sequence[Hashable],
        send: Callable[[Any, str, Any], None],
        say: Callable[[str], None] = lambda text: None,
    ) -> None:
        self.request = request
        self.counts: dict[Hashable, SentCounts] = {}  # the latest of each sender
        self.failure: str | None = None  # why a sender could not begin
        self.begun = False
        self.senders = tuple(senders)  # in the order of their shares
        self._send, self._say = send, say
        self._ready: set[Hashable] = set()
        self._positions: dict[Hashable, int] = {}
        self._done: dict[Hashable, dict[str, str]] = {}  # histograms, encoded, by leg
        self._lost: set[Hashable] = set()
        self._stopping = False

    def start(self) -> None:
        """Sends each sender the request and its share. The load begins when all of them have reported ready."""
        for number, sender in enumerate(self.senders):
            self._send(sender, "request", {"request": asdict(self.request), "share": [number, len(self.senders)]})

    def receive(self, sender: Hashable, kind: str, data: Any) -> None:
        """Handles what a sender reports: message, ready, counts, position, done or failed. Ignores unknown senders."""
        if sender not in self.senders:
            return
        if kind == "message":
            self._say(data)
        elif kind == "ready":
            self._ready.add(sender)
            if len(self._ready) == len(self.senders) and not self._stopping:
                self._begin()
        elif kind == "counts":
            self.counts[sender] = SentCounts.read(data)
        elif kind == "position":
            self._positions[sender] = data
            self._agree()
        elif kind == "done":
            self._done[sender] = data["legs"]
            self.counts[sender] = SentCounts.read(data["sent"])
            self._agree()
        elif kind == "failed":
            self.failure = self.failure or data
            self._lost.add(sender)

    def lost(self, sender: Hashable) -> None:
        """A sender is gone, and what it sent is not known: the load ends."""
        if sender in self.senders and sender not in self._done:
            self._lost.add(sender)
            if self.begun and not self._stopping:
                self._say("a sender was lost; the load ends")
                self.stop()
            elif not self._stopping:
                self.failure = self.failure or "a sender stopped before it could start"
            self._agree()

    def stop(self) -> None:
        """Ends the load at a record that no sender has passed."""
        if self._stopping:
            return
        self._stopping = True
        for sender in self._active:
            self._send(sender, "pause", None)

    @property
    def over(self) -> bool:
        """Whether no sender will report anything more."""
        return not self._active or self.failure is not None or (self._stopping and not self.begun)

    def result(self) -> SentCounts:
        """The counts of all senders, added up. Not exact if a sender is lost or they did not end together."""
        parts = [self.counts[sender] for sender in self.senders if sender in self._done]
        whole = add_up(parts)
        missing = len(self.senders) - len(parts)
        if missing and self.begun:
            whole.problem = (
                f"{missing} of {len(self.senders)} senders stopped without a report, so it is not known what they sent"
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
    def _active(self) -> list[Hashable]:
        return [sender for sender in self.senders if sender not in self._done and sender not in self._lost]

    def _begin(self) -> None:
        self.begun = True
        self.request = self.request.begins(LEAD_SECONDS)
        for sender in self.senders:
            self._send(sender, "begin", {"origin": self.request.origin})

    def _agree(self) -> None:
        """Once all have reported their position, lets them continue to the furthest of these records."""
        waiting = [sender for sender in self._active if sender not in self._positions]
        if self._stopping and not waiting and self._positions:
            furthest = max([*self._positions.values(), *(self.counts[each].records for each in self._done)])
            for sender in self._active:
                self._send(sender, "limit", furthest)
