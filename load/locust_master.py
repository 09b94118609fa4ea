"""Coordinates a load in locust's master, or in the one process when there are no workers."""

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
from ledgerops.load.generator.report import conclude, failure, manifest_path, succeeded
from ledgerops.load.generator.sender import CLOSE_SECONDS, MAX_STOP_SECONDS
from load.locust_worker import MESSAGE
from load.options import read

MAX_CONNECT_SECONDS = 30.0  # for all workers to reach the target
# Without a heartbeat for 3 s locust calls a worker missing, and ends the load when all are: too soon if it is held up.
MISSING_SECONDS = 20
GONE_SECONDS = 3  # in which a missing worker may still come back
LOCAL = "local"

log = logging.getLogger("ledgerops")


class LoadMaster:
    """Runs the load in the process that has locust's web interface; there is one."""

    def __init__(self, environment: Any) -> None:
        self.environment = environment
        self.over = False  # whether the load has ended, or must end now
        self.manifest: Manifest | None = None  # of the last load
        self._coordinator: Coordinator | None = None
        self._budget, self._file = 0.0, Path()
        self._serving = ExitStack()
        self._signals: list[Any] = []  # that are handled while a load without the web interface runs
        self._metrics: LoadMetrics | None = None
        self._since = 0.0
        environment.runner.register_message(f"{MESSAGE}-to-master", self._receive)
        environment.events.test_start.add_listener(self._start)
        environment.events.test_stopping.add_listener(self._stop)
        environment.events.test_stop.add_listener(self._end)
        environment.events.quitting.add_listener(lambda **_: self._serving.close())
        environment.events.worker_connect.add_listener(self._reconnected)

    @property
    def workers(self) -> int:
        """How many workers send, or will send."""
        return len(self._clients if self._coordinator is None else self._coordinator.senders)

    @property
    def _clients(self) -> list[str]:
        clients = getattr(self.environment.runner, "clients", None)
        return [LOCAL] if clients is None else sorted(each.id for each in clients.ready)

    def _start(self, **_: Any) -> None:
        self.over, self.manifest, self._coordinator = False, None, None
        self.environment.process_exit_code = None
        senders = self._clients
        options = self.environment.parsed_options
        try:
            request, self._budget, port = read(options)
            self._file = manifest_path(getattr(options, "manifest", ""), request.table)
            self._serve(request.plan, port)
        except UserError as error:
            self._fail(str(error))
            return
        self._since = time.monotonic()
        if options.headless:
            self._signals = [gevent.signal_handler(each, self._interrupted) for each in (SIGINT, SIGTERM)]
        self._coordinator = Coordinator(request, senders, self._send, lambda text: log.warning(text))
        self._coordinator.start()
        self.environment.runner.greenlet.spawn(self._watch, self._coordinator)

    def _interrupted(self) -> None:
        """Ends the load shape, for which locust waits, so that nothing is cut off as by Python's own interrupt.

        Locust itself ignores SIGTERM while it waits for a shape: a container that is stopped would leave no manifest.
        """
        self._restore_signals()
        self.over = True

    def _restore_signals(self) -> None:
        """Gives signals back to the system: a second one ends the process at once."""
        while self._signals:
            self._signals.pop().cancel()

    def _serve(self, plan: str, port: int | None) -> None:
        self._serving.close()
        self._metrics = LoadMetrics(plan, self._budget)
        self._serving.enter_context(serving(port, self._metrics, log.info, load().host))

    def _send(self, sender: str, kind: str, data: Any) -> None:
        to = () if sender == LOCAL else (sender,)
        self.environment.runner.send_message(f"{MESSAGE}-to-sender", {"kind": kind, "data": data}, *to)

    def _receive(self, environment: Any, msg: Any, **_: Any) -> None:
        if self._coordinator is not None:
            self._coordinator.receive(msg.node_id, msg.data["kind"], msg.data["data"])

    def _reconnected(self, client_id: str, **_: Any) -> None:
        if self._coordinator is not None:
            self._coordinator.lost(client_id)

    def _watch(self, coordinator: Coordinator) -> None:
        """Updates the statistics until the load is over, and detects workers that are gone."""
        while not coordinator.over and self._coordinator is coordinator:
            gevent.sleep(0.2)
            self._publish(coordinator)
            clients = getattr(self.environment.runner, "clients", None)
            if clients is not None:
                for sender in coordinator.senders:
                    if gone(clients, sender):
                        coordinator.lost(sender)
            if not coordinator.begun and time.monotonic() - self._since > MAX_CONNECT_SECONDS:
                self._fail(f"not all of {self.workers} workers could start within {MAX_CONNECT_SECONDS:.0f} s")
                return
        if coordinator.failure is not None:
            self._fail(coordinator.failure)
        if self._coordinator is coordinator:
            self.over = True

    def _publish(self, coordinator: Coordinator) -> None:
        if self._metrics is not None:
            for sender, sent in coordinator.counts.items():
                self._metrics.publish(sent, coordinator.senders.index(sender))

    def _stop(self, **_: Any) -> None:
        """Lets all senders stop at one record and report, before locust ends its users."""
        coordinator = self._coordinator
        if coordinator is None or coordinator.over:
            return
        coordinator.stop()
        limit = time.monotonic() + MAX_STOP_SECONDS + CLOSE_SECONDS
        while not coordinator.over and time.monotonic() < limit:
            gevent.sleep(0.05)

    def _end(self, **_: Any) -> None:
        self._restore_signals()
        coordinator, self._coordinator = self._coordinator, None
        if coordinator is None or not coordinator.begun:
            return
        self._publish(coordinator)
        sent = coordinator.result()
        try:
            self.manifest = conclude(coordinator.request, sent, coordinator.legs(), self._budget, self._file)
        except UserError as error:
            self._fail(str(error))
            return
        if why := failure(self.manifest, sent):
            log.error(why)
        # 2 (could not run) is not replaced
        self.environment.process_exit_code = max(
            self.environment.process_exit_code or 0, 0 if succeeded(self.manifest) else 1
        )

    def _fail(self, text: str) -> None:
        log.error(text)
        self.environment.process_exit_code = 2
        self.over = True


def gone(clients: Any, sender: str) -> bool:
    """Whether a worker has left, or is silent for longer than a busy machine explains."""
    # a heartbeat falls by one a second, and is -1 when locust calls the worker missing
    return sender not in clients or clients[sender].heartbeat < -GONE_SECONDS
