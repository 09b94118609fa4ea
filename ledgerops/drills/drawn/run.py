"""Runs one drawn case: its servers, its rows, the application under `ledgerops exec`, and what happens to it.

What is left in its folder: case.json and times.json (the truth), recording/, eventlog/, live.jsonl (what `/diagnosis`
answered each second), machine.jsonl (how much of the machine others used), checkpoints/ and the log of the application.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import psutil

from ledgerops.common.shutdown import Stop
from ledgerops.drills.drawn.batches import starts
from ledgerops.drills.drawn.case import Case
from ledgerops.drills.drawn.feeder import Feeder, to_folder, to_topic
from ledgerops.drills.harness.bundle import empty_folder
from ledgerops.drills.harness.fault_control import FaultControl
from ledgerops.drills.harness.proxy import Proxy
from ledgerops.errors import UserError
from ledgerops.servers.java import SHORT_LIVED

APPLICATIONS = Path(__file__).parent.parent / "applications"
MAX_START_SECONDS = 240.0  # on a machine that is busy with other things
MAX_FIRST_BATCH_SECONDS = 20.0  # a fault from birth may be that it never ends
MAX_CLOSE_SECONDS = 25.0
POLL_SECONDS = 1.0
MIN_BATCHES = 6  # before and after the onset
MAX_EXTRA_SECONDS = 40.0  # to wait for them
TOPICS = ("input", "second")
PLAN = "seed: 11\nstart: now\nphases: [{{shape: constant, rate: {rate}}}]\n"


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
        case, folder = self.case, self.folder
        feeders = self._inputs()
        if case.trigger == -1.0 or case.options.get("start") == "earliest":
            self._wait(4.0)  # rows that are there before the query starts
        started = time.time()
        self.process = self._start()
        self.opened.callback(self._kill)
        self._until(lambda: any((folder / "checkpoints").glob("*/metadata")), MAX_START_SECONDS)
        started = time.time() - started
        limit = time.monotonic() + MAX_FIRST_BATCH_SECONDS
        while not any((folder / "checkpoints").glob("*/commits/0")) and time.monotonic() < limit:
            self._wait(0.2)
        origin = time.time()
        ended = threading.Event()
        polls = threading.Thread(target=self._poll, args=(ended,), daemon=True)
        polls.start()
        self.opened.callback(polls.join)
        self.opened.callback(ended.set)
        events: list[tuple[float, Callable[[], None]]] = [
            (at, lambda values=values: self.outside.set(**values))  # type: ignore[misc]
            for at, values in case.changes
        ]
        events += [(at, lambda what=what, much=much: self._act(what, much)) for at, what, much in case.actions]  # type: ignore[misc]
        late = self._until_batches(origin, origin + case.onset_seconds) if case.onset == "later" else 0.0
        onset = origin + late + case.onset_seconds
        for at, act in sorted(events, key=lambda event: event[0]):
            self._wait(origin + late + at - time.time())
            act()
        self._until_batches(onset, origin + late + case.seconds)
        times = {"start_seconds": started, "origin": origin, "onset": onset, "ended": time.time()}
        (folder / "times.json").write_text(json.dumps(times, indent=1) + "\n", "utf-8")
        ended.set()
        self.outside.set(block=None, sink=None, row=None, burn=None, region=None, gateway=None, stall=None)
        (folder / "stop").touch()
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

    def _inputs(self) -> list[Feeder]:
        case, folder = self.case, self.folder
        keys = ("load", "load2") if case.two_inputs else ("load",)
        if case.source == "kafka":
            from confluent_kafka.admin import NewTopic

            from ledgerops.common.kafka import reach
            from ledgerops.servers.kafka import Kafka

            if case.proxied:
                self.proxy = self.opened.enter_context(Proxy(seed=case.seed))
                self.kafka = Kafka(folder / "kafka", proxied=self.proxy.port)
                self.proxy.target = self.kafka.behind or 0
            else:
                self.kafka = Kafka(folder / "kafka")
            self.opened.enter_context(self.kafka)
            self.servers = f"127.0.0.1:{self.proxy.port}" if self.proxy else self.kafka.servers
            topics = [NewTopic(name, case.partitions, 1) for name in (*TOPICS, "mirrored")]
            admin = reach(self.kafka.client)  # it gives up its requests when nothing refers to it
            for done in admin.create_topics(topics, request_timeout=120.0).values():
                done.result(MAX_START_SECONDS)
            self._wait(1.0)
            senders = [to_topic(self.kafka.servers, topic, case.partitions) for topic in TOPICS]
        elif case.source == "files":
            senders = [to_folder(folder / topic) for topic in TOPICS]
        else:
            if case.source == "ledger":
                rate = self.outside("load", {}).get("rate", 100)
                (folder / "plan.yaml").write_text(PLAN.format(rate=rate), "utf-8")
            return []
        feeders = [Feeder(self.outside, key, send) for key, send in zip(keys, senders, strict=False)]
        for feeder in feeders:
            self.opened.callback(feeder.close)
        return feeders

    def _start(self) -> subprocess.Popen[bytes]:
        case, folder = self.case, self.folder
        (folder / "eventlog").mkdir()
        conf = {
            "spark.driver.memory": "768m",
            "spark.driver.extraJavaOptions": SHORT_LIVED,
            "spark.executor.extraJavaOptions": SHORT_LIVED,
            "spark.ui.port": "0",
            "spark.eventLog.enabled": "true",
            "spark.eventLog.dir": f"file://{folder / 'eventlog'}",
            "spark.sql.streaming.minBatchesToRetain": "2000",  # the truth is read from the checkpoint
            "spark.local.dir": str(folder / "local"),
            "spark.sql.warehouse.dir": str(folder / "warehouse"),
            **case.conf,
        }
        if case.source == "kafka":
            from ledgerops.servers import jars

            conf["spark.jars"] = ",".join(map(str, jars.connector_jars()))
        args = [
            "--master",
            case.master,
            *(word for key, value in conf.items() for word in ("--conf", f"{key}={value}")),
        ]
        environ = {name: value for name, value in os.environ.items() if not name.startswith(("LEDGEROPS_", "SPARK_"))}
        environ |= {
            "PYSPARK_SUBMIT_ARGS": shlex.join([*args, "pyspark-shell"]),
            "PYSPARK_PYTHON": sys.executable,
            "PYTHONPATH": str(APPLICATIONS.parents[2]),
            "OUTSIDE": str(folder / "outside.json"),
            "LEDGEROPS_PORT": "0",
            "LEDGEROPS_RECORDING": str(folder / "recording"),
        }
        if self.servers and case.kafka_watched:
            environ["LEDGEROPS_KAFKA_SERVERS"] = self.servers
        command = [sys.executable, "-m", "ledgerops", "exec", str(APPLICATIONS / f"{case.app}.py"), *self._options()]
        with (folder / "app.log").open("wb") as log:
            return subprocess.Popen(
                command, cwd=folder, env=environ, stdout=log, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL
            )

    def _options(self) -> list[str]:
        case = self.case
        given: dict[str, Any] = {**case.options, "checkpoint": "checkpoints", "name": case.query}
        if case.source in ("rate", "files", "kafka"):
            given |= {"source": case.source, "servers": self.servers, "partitions": case.partitions}
        if case.trigger is not None:
            given["trigger"] = "once" if case.trigger < 0 else f"{round(case.trigger * 1000)} milliseconds"
            if case.trigger < 0:
                given["start"] = "earliest"
        if case.source == "files":
            for topic in TOPICS:
                (self.folder / topic).mkdir(exist_ok=True)
        words = []
        for key, value in given.items():
            words += [f"--{key}"] if value is True else [f"--{key}", str(value)]
        return words

    def _poll(self, ended: threading.Event) -> None:
        """What `/diagnosis` answers, and what others take of the machine, each second."""
        url, own = "", psutil.Process(self.process.pid)
        psutil.cpu_percent()
        before = _seconds(own)
        at = time.monotonic()
        with (self.folder / "live.jsonl").open("w") as live, (self.folder / "machine.jsonl").open("w") as machine:
            while not ended.wait(POLL_SECONDS):
                if not url:
                    found = re.search(r"(http://[\w.]+:\d+)", (self.folder / "app.log").read_text("utf-8", "replace"))
                    url = found.group(1) if found else ""
                    continue
                line: dict[str, Any] = {"at": time.time()}
                try:
                    with urllib.request.urlopen(f"{url}/diagnosis", timeout=10) as answer:
                        line["diagnosis"] = json.load(answer)
                except (OSError, ValueError) as error:
                    line["problem"] = str(error)
                live.write(json.dumps(line) + "\n")
                live.flush()
                used, now = psutil.cpu_percent(), time.monotonic()
                spent = _seconds(own)
                mine = 100.0 * (spent - before) / max(0.1, now - at) / (psutil.cpu_count() or 1)
                before, at = spent, now
                load = os.getloadavg()[0]
                machine.write(json.dumps({"at": line["at"], "used": used, "own": round(mine, 1), "load": load}) + "\n")

    def _act(self, what: str, much: float) -> None:
        if what == "broker_latency" and self.proxy is not None:
            self.proxy.set(latency=much, jitter=much / 5)
        elif what == "kill_broker":
            self.kafka.kill()
        elif what == "kill_executor":
            executors = [child for child in self._family() if "CoarseGrainedExecutorBackend" in _command_line(child)]
            if executors:
                executors[0].send_signal(signal.SIGKILL)
        elif what == "burn_cpu":
            for _ in range(round(much)):
                process = subprocess.Popen([sys.executable, "-c", "while True: pass"])
                self.opened.callback(process.wait)
                self.opened.callback(process.kill)

    def _family(self) -> list[psutil.Process]:
        try:
            return psutil.Process(self.process.pid).children(recursive=True)
        except psutil.Error:
            return []

    def _kill(self) -> None:
        for each in self._family() if self.process.poll() is None else []:
            try:
                each.send_signal(signal.SIGKILL)
            except psutil.Error:
                pass
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


def _seconds(process: psutil.Process) -> float:
    """CPU seconds of a process and all its children so far."""
    total = 0.0
    try:
        for each in [process, *process.children(recursive=True)]:
            try:
                times = each.cpu_times()
                total += times.user + times.system + times.children_user + times.children_system
            except psutil.Error:
                continue
    except psutil.Error:
        pass
    return total


def _command_line(process: psutil.Process) -> str:
    try:
        return " ".join(process.cmdline())
    except psutil.Error:
        return ""
