"""Attaching to Spark: one worker and one exporter a driver, shared by a watch for each session."""

from __future__ import annotations

import atexit
import logging
import os
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from ledgerops.agent.application_error import application_error, gateway_process
from ledgerops.agent.claim import Claim
from ledgerops.agent.driver_code import IDLE_SECONDS, DriverCodeCollector
from ledgerops.agent.exporter import Exporter
from ledgerops.agent.files import FileCollector
from ledgerops.agent.group_offsets import OffsetCommitter
from ledgerops.agent.hadoop_files import HadoopFiles
from ledgerops.agent.host import HostCollector
from ledgerops.agent.kafka_heads import KafkaCollector
from ledgerops.agent.kafka_proxy import BrokerProxy
from ledgerops.agent.plan import PlanReader
from ledgerops.agent.poller import Poller
from ledgerops.agent.queue import EventQueue
from ledgerops.agent.sessions import REMOVE_SECONDS, Session, application_name, quietly, session_key
from ledgerops.agent.spark_status import SparkStatus
from ledgerops.agent.stacks import LOOK_SECONDS, StackCollector
from ledgerops.agent.tables import TableCollector
from ledgerops.agent.tasks import TaskCollector
from ledgerops.agent.watch import Watch
from ledgerops.agent.watchdog import Watchdog
from ledgerops.agent.worker import Worker
from ledgerops.common.deadline import LAST, within
from ledgerops.common.immortal import never_free
from ledgerops.common.kafka import KafkaClient, read_client
from ledgerops.config import Config, check_variables, load
from ledgerops.diagnosis.engine import Diagnoser
from ledgerops.diagnosis.muting import read_muted
from ledgerops.diagnosis.rules import BY_SLUG
from ledgerops.errors import UserError
from ledgerops.metrics.self_watch import SelfStats
from ledgerops.model.recording import Recorder
from ledgerops.runtime.registry import QueryRegistry
from ledgerops.runtime.status import status_document

if TYPE_CHECKING:
    from ledgerops.agent.push import Pusher
    from ledgerops.runtime.prometheus_collector import Collector
log = logging.getLogger("ledgerops")
SWITCHED_OFF = "switched off by the setting enabled"
STOP_SECONDS = 3.0  # for all collectors to end; one that waits for a hung JVM ends with the process
TABLES_SECONDS = 2.0  # for what the last batches wrote to tables: their storage may not answer
# a failing collector must be known before somebody relies on data that it did not deliver
OBSERVER_INTERVAL_SECONDS = 5.0


class Hub:
    """What the sessions of a driver share. Raises OSError when no port can be had, UserError on bad settings."""

    def __init__(self, config: Config) -> None:
        self.config = config
        self.stats = SelfStats()
        self.queue = EventQueue(self.stats)
        self.sessions: dict[str, Session] = {}
        muted = read_muted(config.mute, BY_SLUG)
        self.claim = Claim(Path(config.recording) if config.recording is not None else None)
        folder = self.claim.folder
        recorder = Recorder(folder, config.recording_segment_bytes, config.recording_total_bytes) if folder else None
        self.registry = QueryRegistry(partial(Diagnoser, freshness=config.freshness_objective_seconds, muted=muted))
        self.worker = Worker(self.queue, self.registry, self.stats, config, recorder)
        try:
            self.exporter = _serve(config, self.worker, self.stats)
            self.pusher = self._pusher()
        except BaseException:
            self.claim.close()
            raise
        # in the order in which they are closed: each may be waiting for a broker
        self.kafka_users: list[KafkaCollector | OffsetCommitter | BrokerProxy] = []
        self.collectors = self._collectors(folder)

    def start(self) -> None:
        """Starts worker, exporter and collectors; the first session exists. Raises RuntimeError without threads."""
        LAST.begin()
        self.worker.start()
        self.exporter.start()
        if self.pusher is not None:
            self.pusher.start()
        for collector in self.collectors:
            collector.start()

    def _pusher(self) -> Pusher | None:
        """Raises UserError for settings that cannot be used."""
        if self.config.otlp_endpoint is None:
            return None
        from ledgerops.agent.push import Pusher

        instance = f"{socket.gethostname()}:{self.exporter.port}"
        try:
            pusher = Pusher(self.config, self.exporter.families, self.stats, instance)
        except UserError:
            self.exporter.close()
            raise
        self.worker.on_snapshot = pusher.notice
        return pusher

    def status(self) -> SparkStatus | None:
        """What Spark knows, for all collectors; None where it cannot be had, which is logged once. Raises what Spark
        raises."""
        session = next((each for each in list(self.sessions.values()) if each.alive), None)
        if session is None:
            return None
        found = session.status(self.config.ui_url)
        if found is None and not self.stats.collector_errors["rest"]:
            self.stats.error("rest")
            log.warning("tasks and executors cannot be read: set ui_url to the address of the Spark UI")
        return found

    def _collectors(self, folder: Path | None) -> list[Poller]:
        config, stats, queue, runs = self.config, self.stats, self.queue, self.registry.runs
        host = self.host = HostCollector(queue, folder or Path(), self.status)
        watchdog = Watchdog(queue, runs, lambda: list(self.sessions.values()))
        collectors: list[tuple[str, float, Callable[[], float | None]]] = [
            ("watchdog", config.watchdog_interval, watchdog.collect),
            ("plan", 1.0, PlanReader(queue, runs).collect),
            ("files", 1.0, FileCollector(queue, runs).collect),
            ("observer", OBSERVER_INTERVAL_SECONDS, queue.report),
            ("host", config.host_interval, host.collect),
        ]
        tables = self.tables = TableCollector(queue, runs, HadoopFiles)
        if config.tables_collector:
            collectors.append(("tables", 1.0, tables.collect))
        if config.driver_code_collector:
            collectors.append(("driver_code", IDLE_SECONDS, DriverCodeCollector(queue, runs).collect))
            collectors.append(("stacks", LOOK_SECONDS, StackCollector(queue, runs).collect))
        if config.tasks_collector:
            tasks = TaskCollector(queue, runs, self.status, config.tasks_interval)
            collectors.append(("tasks", min(1.0, config.tasks_interval), tasks.collect))
        broker = self.broker = BrokerProxy(self._kafka)
        if config.kafka_servers is not None:
            kafka = KafkaCollector(queue, runs, broker)
            collectors.append(("kafka", config.kafka_interval, kafka.collect))
            self.kafka_users.append(kafka)
        if config.commit_group is not None:
            committer = OffsetCommitter(runs, broker, config.commit_group)
            collectors.append(("commit", 1.0, committer.collect))
            self.kafka_users.append(committer)
        self.kafka_users.append(broker)  # the last: it answers the others until they are closed
        return [Poller(name, interval, collect, stats) for name, interval, collect in collectors]

    def _kafka(self) -> KafkaClient:
        """Raises UserError, which the collector's thread counts and logs once."""
        file = self.config.kafka_config
        # librdkafka must not run in the driver: the process that asks reports what it refuses
        return read_client(self.config.kafka_servers or "", Path(file) if file else None, check_options=False)

    def close_inherited(self) -> None:
        """In a forked child: closes its copies of descriptors that the parent still uses, without a message."""
        self.exporter.close_inherited()
        self.worker.close_inherited()
        self.claim.close()
        self.broker.close_inherited()

    def close(self, exiting: bool = False) -> None:
        """Removes the listeners while the gateway exists, then lets the worker finish. Works without `start`.
        `exiting`: this process ends, and with it the queries that run in its JVM."""
        for collector in self.collectors:
            collector.stop(0.0)
        for session in list(self.sessions.values()):
            quietly(session.close)
        if self.config.tables_collector:
            quietly(lambda: within(self.tables.close, TABLES_SECONDS))
        error = application_error(jvm=gateway_process()) if exiting else None
        for run in self.registry.runs.runs():  # nothing more will be seen of it, or it ends with this process
            mark = "with_application" if exiting and run.session.classic else "unwatched"
            data = {"id": run.query_id, "runId": run.run_id, "exception": None, mark: True}
            if mark == "with_application":
                data["application_error"] = error
            self.queue.put("terminated", orjson.dumps(data), run.query, run.session)
        self.sessions.clear()
        self.host.close()
        self.worker.stop()
        self.claim.close()
        if self.pusher is not None:
            self.pusher.close()
        for user in self.kafka_users:
            quietly(user.close)
        try:
            self.exporter.await_scrapes()
        except KeyboardInterrupt:  # whoever interrupts once more wants it to end now
            pass
        quietly(self.exporter.close)
        end = time.monotonic() + STOP_SECONDS
        for collector in self.collectors:
            collector.stop(max(0.0, end - time.monotonic()))
        LAST.close()


class SessionWatch(Watch):
    """The watch of one session; inert once it is closed."""

    def __init__(self, hub: Hub, session: Session) -> None:
        super().__init__()
        self._hub: Hub | None = hub
        self._session: Session | None = session

    @property
    def url(self) -> str | None:
        """Address of the exporter, such as http://127.0.0.1:9464; None once the watch is closed."""
        hub = self._hub  # another thread may close it meanwhile
        return hub.exporter.url if hub else None

    def diagnose(self) -> dict[str, Any]:
        """The diagnosis document of all sessions of this driver, without queries once the watch is closed."""
        hub = self._hub
        if hub is None:
            return super().diagnose()
        from ledgerops.diagnosis.report import document

        return document(hub.worker.snapshot.verdicts(), time.time(), hub.exporter.url, hub.config.app)

    def status(self) -> dict[str, Any]:
        """The document that the exporter serves at /status; without queries once the watch is closed."""
        hub = self._hub
        return super().status() if hub is None else status_document(hub.worker.snapshot, time.time())

    def collector(self) -> Collector:
        """A collector for a prometheus_client registry; one that is asked for after `close` yields nothing."""
        from ledgerops.runtime.prometheus_collector import Collector

        hub = self._hub
        return Collector(hub.exporter.families if hub else tuple)

    def close(self, exiting: bool = False, seconds: float = REMOVE_SECONDS) -> None:
        """Detaches from the session; the exporter ends with the last one. May be called twice. `exiting`: this process
        is about to end. Spark has so many `seconds` to remove the listener."""
        hub, session = self._hub, self._session
        self.abandon(self.error)
        if hub is not None and session is not None:
            _detach(hub, session, exiting, seconds)

    def abandon(self, error: str | None) -> None:
        """Makes the watch inert and leaves its session alone."""
        self._hub = self._session = None
        self.error = error


_lock = threading.RLock()  # a signal handler may close a watch while the thread that it interrupted closes another
_hub: Hub | None = None
_watches: dict[str, SessionWatch] = {}


def attach(spark: Any, **overrides: Any) -> Watch:
    """Watches every streaming query of a session, running or to come. Never raises into the job.

    `overrides` are settings of ledgerops.config.Config. Attaching twice to one session gives the same watch; sessions
    of one driver share an exporter, whose settings are those of the first.
    """
    global _hub
    try:
        with _lock:
            key = session_key(spark)
            if key in _watches:
                return _watches[key]
            hub = _hub
            if hub is None:
                for line in check_variables(os.environ):
                    log.warning("%s", line)
                config = load(**overrides)
                if not config.enabled:
                    return Watch(SWITCHED_OFF)
                hub = Hub(config if config.app else replace(config, app=application_name(spark)))
            elif overrides:
                log.warning(
                    "ledgerops is already attached and serves at %s; settings of later calls are ignored",
                    hub.exporter.url,
                )
            try:
                session = Session(spark, hub.queue)
                # an application may keep creating sessions, and stop them without closing their watch
                for stopped in [each for each in hub.sessions.values() if not each.alive]:
                    quietly(stopped.close)
                    del hub.sessions[stopped.key]
                    _watches.pop(stopped.key, None)
                hub.sessions[key] = session
                hub.registry.runs.readmit()
                if _hub is None:
                    hub.start()
                    atexit.register(_close_all)
            except BaseException:
                if _hub is None:
                    hub.close()
                raise
            _hub, _watches[key] = hub, SessionWatch(hub, session)
            return _watches[key]
    except Exception as error:
        reason = f"{type(error).__name__}: {error}".splitlines()[0]
        log.warning("ledgerops is not attached (%.300s); the job continues without it", reason)
        return Watch(reason)


def _detach(hub: Hub, session: Session, exiting: bool, seconds: float) -> None:
    global _hub
    with _lock:
        quietly(partial(session.close, seconds))
        hub.sessions.pop(session.key, None)
        _watches.pop(session.key, None)
        last = not hub.sessions and _hub is hub
        if last:
            _hub = None
            atexit.unregister(_close_all)
    if last:
        hub.close(exiting)


def _abandon_in_child() -> None:
    """After a fork: the child has none of our threads, and the sockets that it inherited are its parent's. A command on
    py4j's socket from here would take the answer to one of the parent's. So nothing is closed that talks to Spark, and
    not even freed: py4j sends a command for each Java object that Python lets go of."""
    global _hub, _lock
    hub, _hub, _lock = _hub, None, threading.RLock()
    for watch in _watches.values():
        watch.abandon("this process was forked from the observed one")
    atexit.unregister(_close_all)
    if hub is not None:
        never_free([hub, dict(_watches)])
        quietly(hub.close_inherited)
    _watches.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_abandon_in_child)


def _close_all() -> None:
    """At the interpreter's exit: listeners must be gone before py4j's callback server is. What hangs is waited for
    once, and not for each session."""
    end = time.monotonic() + REMOVE_SECONDS
    for watch in list(_watches.values()):
        watch.close(exiting=True, seconds=max(0.0, end - time.monotonic()))


def _serve(config: Config, worker: Worker, stats: SelfStats) -> Exporter:
    try:
        return Exporter(config, worker, stats)
    except OSError as error:
        if config.port == 0:
            raise
        exporter = Exporter(replace(config, port=0), worker, stats)
        log.warning("port %d is in use (%s): serving at %s instead", config.port, error.strerror or error, exporter.url)
        return exporter
