"""What a locust worker does: it carries messages to a member of the team and gives it time on the hub.

The member never waits in librdkafka: each step is some milliseconds at most, then the hub has its turn. Only to reach
the target may take seconds, which a real thread does.
"""

from __future__ import annotations

import time
from signal import SIGINT
from typing import Any

import gevent
from locust.runners import WorkerRunner

from ledgerops.load.generator.sender import ShareSender
from load.locust_stats import Statistics

MESSAGE = "ledgerops"  # both ways; the data say what it is
GRACE = 25.0  # seconds in which a worker that was interrupted waits for the agreed end, or for one that is silent


class Pacing:
    """One in each process that sends."""

    def __init__(self, environment: Any) -> None:
        self.environment = environment
        self._member: ShareSender | None = None
        self._statistics: Statistics | None = None
        self._running = False
        self._hub = gevent.get_hub()
        if isinstance(environment.runner, WorkerRunner) or not environment.parsed_options.headless:
            self._signal = gevent.signal_handler(SIGINT, self._interrupted)  # else the lead handles it
        environment.runner.register_message(f"{MESSAGE}-to-member", self._heard)
        environment.events.quitting.add_listener(self._quitting)

    def run(self) -> None:
        """Sends this worker's share, from the order to the last acknowledgement. One at a time."""
        if self._running:
            return
        self._running = True
        try:
            while self._member is None:
                gevent.sleep(0.01)
            member = self._member
            while not member.over:
                if member.ordered:
                    gevent.get_hub().threadpool.apply(member.connect)
                gevent.sleep(member.step())
                if self._statistics is not None and member.pacer is not None:
                    self._statistics.count(member.pacer.sent, last=member.over)
        finally:
            self._running = False

    def abandon(self) -> None:
        """The user is ended: what is not sent until now stays unsent, and the conductor is informed how far it came."""
        member, self._member = self._member, None
        if member is not None and not member.over:
            member.abandon()

    def _heard(self, environment: Any, msg: Any, **_: Any) -> None:
        kind, data = msg.data["kind"], msg.data["data"]
        if kind == "order":
            self._member = ShareSender(self._send)
            self._statistics = Statistics(environment.stats, data["order"]["table"])
        if self._member is not None:
            self._member.heard(kind, data)

    def _send(self, kind: str, data: Any) -> None:
        # a message sent from the thread that connects must not touch the hub's socket
        message = {"kind": kind, "data": data}
        runner = self.environment.runner
        if gevent.get_hub() is self._hub:
            runner.send_message(f"{MESSAGE}-to-lead", message)
        else:
            self._hub.loop.run_callback_threadsafe(runner.send_message, f"{MESSAGE}-to-lead", message)

    def _interrupted(self) -> None:
        """Locust's main greenlet ends by it. Python's own interrupt would break off a step of the member instead."""
        self._hub.handle_system_error(KeyboardInterrupt, KeyboardInterrupt())

    def _quitting(self, **_: Any) -> None:
        """Ctrl-C reaches workers of the same terminal, too: the leader's word comes in a moment."""
        limit = time.monotonic() + GRACE
        while self._running and self._member is not None and self._member.pacer and time.monotonic() < limit:
            gevent.sleep(0.05)
