"""Runs one sender of a load in a locust worker: carries its messages, and gives it time on the hub.

The sender never waits in librdkafka: each step is some milliseconds at most, then the hub has its turn. Reaching
the target may take seconds, so a real thread does it.
"""

import time
from signal import SIGINT
from typing import Any

import gevent
from locust.runners import WorkerRunner

from ledgerops.load.generator.sender import ShareSender
from load.locust_stats import Statistics

MESSAGE = "ledgerops"  # in both directions; the data have the kind
MAX_END_SECONDS = 25.0  # that an interrupted worker waits for the agreed end, or for a silent master


class LoadWorker:
    """Sends a share of the load; there is one in each process that sends."""

    def __init__(self, environment: Any) -> None:
        self.environment = environment
        self._sender: ShareSender | None = None
        self._statistics: Statistics | None = None
        self._running = False
        self._hub = gevent.get_hub()
        if isinstance(environment.runner, WorkerRunner) or not environment.parsed_options.headless:
            self._signal = gevent.signal_handler(SIGINT, self._interrupted)  # else the master handles it
        environment.runner.register_message(f"{MESSAGE}-to-sender", self._receive)
        environment.events.quitting.add_listener(self._quitting)

    def run(self) -> None:
        """Sends this worker's share, from the request to the last acknowledgement. One load at a time."""
        if self._running:
            return
        self._running = True
        try:
            while self._sender is None:
                gevent.sleep(0.01)
            sender = self._sender
            while not sender.over:
                if sender.must_connect:
                    gevent.get_hub().threadpool.apply(sender.connect)
                gevent.sleep(sender.step())
                if self._statistics is not None and sender.pacer is not None:
                    self._statistics.count(sender.pacer.sent, last=sender.over)
        finally:
            self._running = False

    def abandon(self) -> None:
        """Ends the load of a user that locust has ended, and reports to the coordinator how far it came."""
        sender, self._sender = self._sender, None
        if sender is not None and not sender.over:
            sender.abandon()

    def _receive(self, environment: Any, msg: Any, **_: Any) -> None:
        kind, data = msg.data["kind"], msg.data["data"]
        if kind == "request":
            self._sender = ShareSender(self._send)
            self._statistics = Statistics(environment.stats, data["request"]["table"])
        if self._sender is not None:
            self._sender.receive(kind, data)

    def _send(self, kind: str, data: Any) -> None:
        # a message sent from the thread that connects must not touch the hub's socket
        message = {"kind": kind, "data": data}
        runner = self.environment.runner
        if gevent.get_hub() is self._hub:
            runner.send_message(f"{MESSAGE}-to-master", message)
        else:
            self._hub.loop.run_callback_threadsafe(runner.send_message, f"{MESSAGE}-to-master", message)

    def _interrupted(self) -> None:
        """Ends locust's main greenlet. Python's own interrupt would cut off a step of the sender instead."""
        self._hub.handle_system_error(KeyboardInterrupt, KeyboardInterrupt())

    def _quitting(self, **_: Any) -> None:
        """Waits for the master's message: Ctrl-C reaches the workers of the same terminal, too."""
        limit = time.monotonic() + MAX_END_SECONDS
        while self._running and self._sender is not None and self._sender.pacer and time.monotonic() < limit:
            gevent.sleep(0.05)
