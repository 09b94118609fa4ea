"""One sender of a team: it does what the conductor says (see `team`), and never waits itself.

It receives order, begin, pause and limit, and sends ready, said, books, position, done and failed.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from ledgerops.errors import UserError
from ledgerops.load.generator.latency_samples import Sampler
from ledgerops.load.generator.pacer import TICK_SECONDS, Pacer, settle
from ledgerops.load.generator.request import LoadRequest
from ledgerops.load.generator.target import ALL, Share, Target

REPORT_SECONDS = 0.5  # seconds between two reports
CLOSE_SECONDS = 60.0  # seconds for the target to take what it has not acknowledged at the end
GIVE_UP = 10.0  # seconds to come to the agreed end once the load was stopped

Send = Callable[[str, Any], None]


class ShareSender:
    """One sender, driven by the conductor's messages and by calls of `step`."""

    def __init__(self, send: Send, clock: Callable[[], float] = time.monotonic) -> None:
        self.over = False
        self.pacer: Pacer | None = None
        self._send, self._clock = send, clock
        self._order: LoadRequest | None = None
        self._target: Target | None = None
        self._share = ALL
        self._paused = False
        self._limit_at: float | None = None  # when the limit arrived
        self._closing_since: float | None = None
        self._reported = 0.0
        self._stopped = False
        self._sampler: Sampler | None = None

    def heard(self, kind: str, data: Any) -> None:
        """Handles one message from the conductor: order, begin, pause or limit."""
        if kind == "order":
            self._order, self._share = LoadRequest(**data["order"]), Share(*data["share"])
        elif kind == "begin" and self._order is not None:
            self._begin(data["origin"])
        elif kind == "pause":
            self._paused = True
            self._send("position", self._share.number if self.pacer is None else self.pacer.reached)
        elif kind == "limit":
            self._paused, self._limit_at = False, self._clock()
            if self.pacer is not None:
                self.pacer.limit(data)

    @property
    def ordered(self) -> bool:
        """Whether it has an order and has not connected yet."""
        return self._order is not None and self._target is None and not self.over

    def connect(self) -> None:
        """Reaches the target, which may take seconds."""
        assert self._order is not None
        is_first = self._share.number == 0

        def say(text: str) -> None:
            if is_first:
                self._send("said", text)

        try:
            stream = self._order.stream()
            stream.rows(0, 1)  # its tables are made once a process, and not when it has begun
            self._target = self._order.target(
                stream.partitions, lambda seconds: self._stopped, say, self._share, is_first
            )
            self._sampler = self._order.sampler(stream, self._share)
        except UserError as error:
            self.over = True
            self._send("failed", str(error))
            return
        self._send("ready", None)

    def step(self) -> float:
        """Sends what is due and returns the seconds until the next call. An error is reported and ends the sender."""
        try:
            return self._step()
        except UserError as error:  # the target or the file of samples takes no more
            self.over = True
            self._send("failed", str(error))
            return 0.0

    def _step(self) -> float:
        if self._target is None or self.pacer is None:
            return TICK_SECONDS
        if self._closing_since is not None:
            self._close()
            return TICK_SECONDS
        if self._paused:
            self._target.serve()
            return TICK_SECONDS
        pause = self.pacer.step()
        now = self._clock()
        if self._limit_at is not None and now - self._limit_at > GIVE_UP:
            self.pacer.stop()
        if self.pacer.over:
            self._closing_since = now
        elif now - self._reported >= REPORT_SECONDS:
            self._reported = now
            self._send("books", self.pacer.sent.document(summed=False))
        return pause

    def abandon(self) -> None:
        """Ends at once where it is; what waits for acknowledgement is not waited for long."""
        self._stopped = True
        if self.pacer is not None and not self.over:
            self.pacer.stop()
            self._end()

    def _begin(self, origin: float) -> None:
        assert self._order is not None and self._target is not None
        order = replace(self._order, origin=origin)
        self.pacer = Pacer(
            order.stream(),
            self._target,
            records=order.records,
            at_once=order.at_once,
            share=self._share,
            sampler=self._sampler,
            clock=self._clock,
        )
        self.pacer.prepare()
        self.pacer.begin(None if order.at_once else self._clock() + origin - time.time())

    def _close(self) -> None:
        assert self._target is not None and self._closing_since is not None
        self._target.serve()
        if not self._target.waiting or self._clock() - self._closing_since > CLOSE_SECONDS:
            self._end()

    def _end(self) -> None:
        assert self.pacer is not None and self._target is not None
        self._stopped = self.over = True
        settle(self.pacer.sent, self._target)
        legs: dict[str, str] = {}
        if self._sampler is not None:
            self._sampler.close()
            legs = {name: each.encode().decode() for name, each in self._sampler.legs.items()}
        self._send("done", {"sent": self.pacer.sent.document(), "legs": legs})
