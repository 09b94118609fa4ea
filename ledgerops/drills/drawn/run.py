"""Runs one drawn case: its servers, its rows, the application under `ledgerops exec`, and what happens to it.

What is left in its folder: case.json and times.json (the truth), recording/, eventlog/, live.jsonl (what `/diagnosis`
answered each second), machine.jsonl (how much of the machine others used), checkpoints/ and the log of the application.
"""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from ledgerops.common.shutdown import Stop
from ledgerops.drills.drawn.application import start_application
from ledgerops.drills.drawn.batches import starts
from ledgerops.drills.drawn.case import Case
from ledgerops.drills.drawn.feeder import Feeder, Send, to_folder, to_topic
from ledgerops.drills.drawn.polling import Polling
from ledgerops.drills.harness.bundle import empty_folder
from ledgerops.drills.harness.fault_control import FaultControl
from ledgerops.drills.harness.processes import command_line, descendants, send
from ledgerops.drills.harness.proxy import Proxy
from ledgerops.errors import UserError

MAX_START_SECONDS = 240.0  # on a machine that is busy with other things
MAX_FIRST_BATCH_SECONDS = 20.0  # a fault from birth may be that it never ends
MAX_CLOSE_SECONDS = 25.0
EARLY_ROWS_SECONDS = 4.0  # for which rows arrive before a query starts that reads what there is
MIN_BATCHES = 6  # before and after the onset
MAX_EXTRA_SECONDS = 40.0  # to wait for them
TOPICS = ("input", "second")
PLAN = "seed: 11\nstart: now\nphases: [{{shape: constant, rate: {rate}}}]\n"
# what the faults of the outside set, and what is released at the end so that the application can stop
FAULTS = ("block", "sink", "row", "burn", "region", "gateway", "stall")


def run(case: Case, folder: Path, stop: Stop | None = None) -> None:
    """Runs a case into a new folder. Raises UserError when the application did not start or the run was stopped."""
    stop = stop or Stop()
    empty_folder(folder, "case.json")
    folder = folder.absolute()
    case.save(folder)
    with ExitStack() as opened:
        CaseRun(case, folder, stop, opened).run()


class CaseRun:
    """One case while it runs."""

    def __init__(self, case: Case, folder: Path, stop: Stop, opened: ExitStack) -> None:
        self.case, self.folder, self.stop, self.opened = case, folder, stop, opened
        self.outside = FaultControl(folder / "outside.json")
        self.outside.set(**case.control)
        self.servers = ""
        self.kafka: Any = None
        self.proxy: Proxy | None = None
        self.process: subprocess.Popen[bytes]

    def run(self) -> None:
        """Runs the case to its end and writes times.json. Raises UserError if the query cannot start or is stopped."""
        feeders = self._feeders()
        if self.case.trigger == -1.0 or self.case.options.get("start") == "earliest":
            self._wait(EARLY_ROWS_SECONDS)
        start_seconds = self._start()
        origin = time.time()
        polling = Polling(self.folder, self.process.pid)
        self.opened.callback(polling.close)
        onset = self._play(origin)
        times = {"start_seconds": start_seconds, "origin": origin, "onset": onset, "ended": time.time()}
        (self.folder / "times.json").write_text(json.dumps(times, indent=1) + "\n", "utf-8")
        polling.stop()
        self._finish(feeders)

    def _start(self) -> float:
        """Starts the application, waits for its query and for a first batch, and gives the seconds until the query."""
        checkpoints = self.folder / "checkpoints"
        began = time.time()
        self.process = start_application(self.case, self.folder, self.servers)
        self.opened.callback(self._kill)
        self._until(lambda: any(checkpoints.glob("*/metadata")), MAX_START_SECONDS)
        took = time.time() - began
        limit = time.monotonic() + MAX_FIRST_BATCH_SECONDS
        while not any(checkpoints.glob("*/commits/0")) and time.monotonic() < limit:
            self._wait(0.2)
        return took

    def _play(self, origin: float) -> float:
        """Does everything that happens to the case, each at its time, until its end. Gives the instant of the onset."""
        case = self.case
        events: list[tuple[float, Callable[[], None]]] = [
            (at, lambda values=values: self.outside.set(**values))  # type: ignore[misc]
            for at, values in case.changes
        ]
        events += [
            (at, lambda what=what, amount=amount: self._act(what, amount))  # type: ignore[misc]
            for at, what, amount in case.actions
        ]
        late = self._until_batches(origin, origin + case.onset_seconds) if case.onset == "later" else 0.0
        for at, act in sorted(events, key=lambda event: event[0]):
            self._wait(origin + late + at - time.time())
            act()
        onset = origin + late + case.onset_seconds
        self._until_batches(onset, origin + late + case.seconds)
        return onset

    def _finish(self, feeders: list[Feeder]) -> None:
        """Lets the application stop by itself, for its event log to be whole."""
        self.outside.set(**dict.fromkeys(FAULTS))
        (self.folder / "stop").touch()
        for feeder in feeders:
            feeder.close()
        try:
            self.process.wait(MAX_CLOSE_SECONDS)
        except subprocess.TimeoutExpired:
            pass  # it is killed; its event log then ends with the last event that was flushed

    def _until_batches(self, since: float, until: float) -> float:
        """Waits until then, and on a slow machine for some batches after `since`. Gives the seconds beyond `until`."""
        self._wait(until - time.time())
        limit = until + min(MAX_EXTRA_SECONDS, 0.8 * (until - since))
        folders = list((self.folder / "checkpoints").glob("*"))
        while time.time() < limit and self.process.poll() is None:
            counts = [sum(at >= since for at in starts(checkpoint)) for checkpoint in folders]
            if counts and min(counts) >= MIN_BATCHES:
                break
            self._wait(0.5)
        return max(0.0, time.time() - until)

    def _feeders(self) -> list[Feeder]:
        """Starts what sends rows to the case's source, and before that the source itself."""
        if self.case.source == "kafka":
            senders = self._open_kafka()
        elif self.case.source == "files":
            senders = [to_folder(self.folder / topic) for topic in TOPICS]
        else:
            if self.case.source == "ledger":
                rate = self.outside("load", {}).get("rate", 100)
                (self.folder / "plan.yaml").write_text(PLAN.format(rate=rate), "utf-8")
            return []
        keys = ("load", "load2") if self.case.two_inputs else ("load",)
        feeders = [Feeder(self.outside, key, sender) for key, sender in zip(keys, senders, strict=False)]
        for feeder in feeders:
            self.opened.callback(feeder.close)
        return feeders

    def _open_kafka(self) -> list[Send]:
        """Starts a broker with its topics; gives what sends to each of TOPICS."""
        from confluent_kafka.admin import NewTopic

        from ledgerops.common.kafka import reach
        from ledgerops.servers.kafka import Kafka

        folder, partitions = self.folder / "kafka", self.case.partitions
        if self.case.proxied:
            self.proxy = self.opened.enter_context(Proxy(seed=self.case.seed))
            self.kafka = Kafka(folder, proxied=self.proxy.port)
            self.proxy.target = self.kafka.behind or 0
        else:
            self.kafka = Kafka(folder)
        self.opened.enter_context(self.kafka)
        self.servers = f"127.0.0.1:{self.proxy.port}" if self.proxy else self.kafka.servers
        admin = reach(self.kafka.client)  # it gives up its requests when nothing refers to it
        topics = [NewTopic(name, partitions, 1) for name in (*TOPICS, "mirrored")]
        for done in admin.create_topics(topics, request_timeout=120.0).values():
            done.result(MAX_START_SECONDS)
        self._wait(1.0)
        return [to_topic(self.kafka.servers, topic, partitions) for topic in TOPICS]

    def _act(self, what: str, amount: float) -> None:
        """Does one action of the case; `amount` is in the unit of the action: seconds, or a number of processes."""
        if what == "broker_latency" and self.proxy is not None:
            self.proxy.set(latency=amount, jitter=amount / 5)
        elif what == "kill_broker":
            self.kafka.kill()
        elif what == "kill_executor":
            below = descendants(self.process.pid)
            send([each for each in below if "CoarseGrainedExecutorBackend" in command_line(each)][:1], signal.SIGKILL)
        elif what == "burn_cpu":
            for _ in range(round(amount)):
                process = subprocess.Popen([sys.executable, "-c", "while True: pass"])
                self.opened.callback(process.wait)
                self.opened.callback(process.kill)

    def _kill(self) -> None:
        if self.process.poll() is None:
            send(descendants(self.process.pid), signal.SIGKILL)
        self.process.kill()
        self.process.wait()
        shutil.rmtree(self.folder / "local", ignore_errors=True)

    def _until(self, holds: Callable[[], bool], seconds: float) -> None:
        limit = time.monotonic() + seconds
        while not holds():
            if self.process.poll() is not None or time.monotonic() > limit:
                raise UserError(f"drill {self.case.name}: the query did not start; see {self.folder / 'app.log'}")
            self._wait(0.2)

    def _wait(self, seconds: float) -> None:
        if seconds > 0 and self.stop.wait(seconds):
            raise UserError(f"drill {self.case.name}: {self.stop.reason}")
