"""What locust's master does, or the one process when there are no workers: it conducts the team and keeps the books."""

from __future__ import annotations

import logging
import time
from contextlib import ExitStack
from pathlib import Path
from signal import SIGINT, SIGTERM
from typing import Any

import gevent

from ledgerops.config import load
from ledgerops.errors import UserError
from ledgerops.ledger.plan.manifest import Manifest
from ledgerops.load.generator.coordinator import Coordinator
from ledgerops.load.generator.metrics import LoadMetrics, serving
from ledgerops.load.generator.report import conclude, failure, good, place_of
from ledgerops.load.generator.sender import CLOSE_SECONDS, GIVE_UP
from load.locust_worker import MESSAGE
from load.options import metrics_port, read

CONNECT = 30.0  # seconds for all workers to reach the target
# Without a heartbeat for 3 s locust calls a worker missing, and ends the load when all are: too soon if it is held up.
MISSING_SECONDS = 20
GONE_SECONDS = 3  # for which a missing worker may still come back
LOCAL = "local"

log = logging.getLogger("ledgerops")


class Lead:
    """One in the process that the users of locust talk to."""

    def __init__(self, environment: Any) -> None:
        self.environment = environment
        self.over = False  # whether the load has come to its end, or shall
        self.manifest: Manifest | None = None  # of the last load
        self._conductor: Coordinator | None = None
        self._budget, self._file = 0.0, Path()
        self._serving = ExitStack()
        self._signals: list[Any] = []  # that are handled while a load without the web interface runs
        self._board: LoadMetrics | None = None
        self._since = 0.0
        environment.runner.register_message(f"{MESSAGE}-to-lead", self._heard)
        environment.events.test_start.add_listener(self._start)
        environment.events.test_stopping.add_listener(self._stop)
        environment.events.test_stop.add_listener(self._end)
        environment.events.quitting.add_listener(lambda **_: self._serving.close())
        environment.events.worker_connect.add_listener(self._reconnected)

    @property
    def workers(self) -> int:
        """How many send, or will."""
        return len(self._clients if self._conductor is None else self._conductor.members)

    @property
    def _clients(self) -> list[str]:
        clients = getattr(self.environment.runner, "clients", None)
        return [LOCAL] if clients is None else sorted(each.id for each in clients.ready)

    def _start(self, **_: Any) -> None:
        self.over, self.manifest, self._conductor = False, None, None
        self.environment.process_exit_code = None
        members = self._clients
        options = self.environment.parsed_options
        try:
            order, self._budget = read(options)
            self._file = place_of(getattr(options, "manifest", ""), order.table)
            self._serve(order.plan, metrics_port(options))
        except UserError as error:
            self._fail(str(error))
            return
        self._since = time.monotonic()
        if options.headless:
            self._signals = [gevent.signal_handler(each, self._interrupted) for each in (SIGINT, SIGTERM)]
        self._conductor = Coordinator(order, members, self._send, lambda text: log.warning(text))
        self._conductor.start()
        self.environment.runner.greenlet.spawn(self._watch, self._conductor)

    def _interrupted(self) -> None:
        """The shape hears of it, which locust waits for, and nothing is broken off as by Python's own interrupt.

        SIGTERM locust does not hear while it waits for a shape: a container that is stopped would leave no manifest.
        """
        self._deaf()
        self.over = True

    def _deaf(self) -> None:
        """A signal is the system's again: who sends a second one will not wait."""
        while self._signals:
            self._signals.pop().cancel()

    def _serve(self, plan: str, port: int | None) -> None:
        self._serving.close()
        self._board = LoadMetrics(plan, self._budget)
        self._serving.enter_context(serving(port, self._board, log.info, load().host))

    def _send(self, member: str, kind: str, data: Any) -> None:
        to = () if member == LOCAL else (member,)
        self.environment.runner.send_message(f"{MESSAGE}-to-member", {"kind": kind, "data": data}, *to)

    def _heard(self, environment: Any, msg: Any, **_: Any) -> None:
        if self._conductor is not None:
            self._conductor.heard(msg.node_id, msg.data["kind"], msg.data["data"])

    def _reconnected(self, client_id: str, **_: Any) -> None:
        if self._conductor is not None:
            self._conductor.lost(client_id)

    def _watch(self, conductor: Coordinator) -> None:
        """Updates the statistics until the load is over, and detects workers that are gone."""
        while not conductor.over and self._conductor is conductor:
            gevent.sleep(0.2)
            self._publish(conductor)
            clients = getattr(self.environment.runner, "clients", None)
            if clients is not None:
                for member in conductor.members:
                    if gone(clients, member):
                        conductor.lost(member)
            if not conductor.begun and time.monotonic() - self._since > CONNECT:
                self._fail(f"not all of {self.workers} workers could start within {CONNECT:.0f} s")
                return
        if conductor.failure is not None:
            self._fail(conductor.failure)
        if self._conductor is conductor:
            self.over = True

    def _publish(self, conductor: Coordinator) -> None:
        if self._board is not None:
            for member, sent in conductor.books.items():
                self._board.publish(sent, conductor.number(member))

    def _stop(self, **_: Any) -> None:
        """Before locust ends the users: all senders stop at one record and report the outcome."""
        conductor = self._conductor
        if conductor is None or conductor.over:
            return
        conductor.stop()
        limit = time.monotonic() + GIVE_UP + CLOSE_SECONDS
        while not conductor.over and time.monotonic() < limit:
            gevent.sleep(0.05)

    def _end(self, **_: Any) -> None:
        self._deaf()
        conductor, self._conductor = self._conductor, None
        if conductor is None or not conductor.begun:
            return
        self._publish(conductor)
        sent = conductor.result()
        try:
            self.manifest = conclude(conductor.order, sent, conductor.legs(), self._budget, self._file)
        except UserError as error:
            self._fail(str(error))
            return
        if why := failure(self.manifest, sent):
            log.error(why)
        # 2, could not run, stays what it is
        self.environment.process_exit_code = max(
            self.environment.process_exit_code or 0, 0 if good(self.manifest) else 1
        )

    def _fail(self, text: str) -> None:
        log.error(text)
        self.environment.process_exit_code = 2
        self.over = True


def gone(clients: Any, member: str) -> bool:
    """Whether a worker has left, or is silent for longer than a busy machine holds it up."""
    return (
        member not in clients or clients[member].heartbeat < -GONE_SECONDS
    )  # it falls by one a second, to -1 when missing
