"""One sender of a shared load: it does what the coordinator says (see `coordinator`), and never waits itself.

It receives request, begin, pause and limit, and sends ready, message, counts, position, done and failed.
"""

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from ledgerops.errors import UserError
from ledgerops.load.generator.latency_samples import Sampler
from ledgerops.load.generator.pacer import TICK_SECONDS, Pacer, settle
from ledgerops.load.generator.request import LoadRequest
from ledgerops.load.generator.target import ALL, Share, Target

REPORT_SECONDS = 0.5  # between two reports
CLOSE_SECONDS = 60.0  # for the target to acknowledge the last records
MAX_STOP_SECONDS = 10.0  # to reach the agreed end once the load was stopped

Send = Callable[[str, Any], None]


class ShareSender:
    """One sender, driven by the coordinator's messages and by calls of `step`."""

    def __init__(self, send: Send, clock: Callable[[], float] = time.monotonic) -> None:
        self.over = False
        self.pacer: Pacer | None = None
        self._send, self._clock = send, clock
        self._request: LoadRequest | None = None
        self._target: Target | None = None
        self._share = ALL
        self._paused = False
        self._limit_at: float | None = None  # when the limit arrived
        self._closing_since: float | None = None
        self._reported = 0.0
        self._stopped = False
        self._sampler: Sampler | None = None

    def receive(self, kind: str, data: Any) -> None:
        """Handles one message from the coordinator: request, begin, pause or limit."""
        if kind == "request":
            self._request, self._share = LoadRequest(**data["request"]), Share(*data["share"])
        elif kind == "begin" and self._request is not None:
            self._begin(data["origin"])
        elif kind == "pause":
            self._paused = True
            self._send("position", self._share.number if self.pacer is None else self.pacer.reached)
        elif kind == "limit":
            self._paused, self._limit_at = False, self._clock()
            if self.pacer is not None:
                self.pacer.limit(data)

    @property
    def must_connect(self) -> bool:
        """Whether it has a request and has not connected yet."""
        return self._request is not None and self._target is None and not self.over

    def connect(self) -> None:
        """Reaches the target, which may take seconds."""
        assert self._request is not None

        def say(text: str) -> None:
            if self._share.number == 0:  # all senders would say the same of the target
                self._send("message", text)

        try:
            stream = self._request.stream()
            stream.rows(0, 1)  # makes its tables before the schedule begins
            self._target = self._request.target(stream.partitions, lambda seconds: self._stopped, say, self._share)
            self._sampler = self._request.sampler(stream, self._share)
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
        if self._limit_at is not None and now - self._limit_at > MAX_STOP_SECONDS:
            self.pacer.stop()
        if self.pacer.over:
            self._closing_since = now
        elif now - self._reported >= REPORT_SECONDS:
            self._reported = now
            self._send("counts", self.pacer.sent.document(summed=False))
        return pause

    def abandon(self) -> None:
        """Ends at once where it is; what waits for acknowledgement is not waited for long."""
        self._stopped = True
        if self.pacer is not None and not self.over:
            self.pacer.stop()
            self._end()

    def _begin(self, origin: float) -> None:
        assert self._request is not None and self._target is not None
        request = replace(self._request, origin=origin)
        self.pacer = Pacer(
            request.stream(),
            self._target,
            records=request.records,
            at_once=request.at_once,
            share=self._share,
            sampler=self._sampler,
            clock=self._clock,
        )
        self.pacer.prepare()
        self.pacer.begin(None if request.at_once else self._clock() + origin - time.time())

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
