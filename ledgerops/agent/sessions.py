"""One Spark session under watch, classic or Connect: the only place that knows which of the two it is."""

import logging
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar

import orjson

from ledgerops.agent.connect_plan import SentPlans
from ledgerops.agent.listener import Connections, EventSink, add_connect_listener, add_java_listener
from ledgerops.agent.queue import EventQueue
from ledgerops.agent.spark_rest import SparkRest
from ledgerops.agent.spark_status import SparkStatus
from ledgerops.common.deadline import OneAtATime, within

log = logging.getLogger("ledgerops")

REMOVE_SECONDS = 3.0  # for Spark to remove the listener
CALL_SECONDS = 5.0  # for an answer of a Connect server
WITHOUT_STATUS_SECONDS = 30.0  # until a session that tells nothing of its tasks is asked again
Returned = TypeVar("Returned")
Threads = Sequence[tuple[str, bool, Sequence[str]]]  # as of `driver_threads`


class ActiveQuery(NamedTuple):
    """A running query with PySpark's handle on it."""

    query_id: str
    run_id: str
    name: str | None
    handle: Any


class Session:
    """Registers a listener when made; raises what Spark raises when that fails."""

    _status: SparkStatus | None = None
    _status_due = 0.0  # when it is looked for again

    def __init__(self, session: Any, queue: EventQueue) -> None:
        self.spark = session
        self.classic = is_classic(session)
        self.key = session_key(session)
        sink = EventSink(queue, origin=self)
        self._sink = sink
        self._remove: Callable[[], None] | None
        self._listens: Callable[[], bool] = lambda: True
        self._connections: Connections | None = None
        self._questions, self._status_lock = OneAtATime("ledgerops-connect"), threading.Lock()
        self.sent_plans = SentPlans()
        if self.classic:
            self._remove, self._connections = add_java_listener(session, sink)
        else:
            self._remove, self._listens = add_connect_listener(session, sink, self.sent_plans.note)

    @property
    def alive(self) -> bool:
        """False once the session's context or channel was stopped."""
        if self.classic:
            return getattr(self.spark.sparkContext, "_jsc", None) is not None
        return not getattr(self.spark, "is_stopped", False)

    @property
    def app_id(self) -> str | None:
        """Spark's id of the application; None where a Connect server does not give it. Raises what Spark raises."""
        return str(self.spark.sparkContext.applicationId) if self.classic else self.setting("spark.app.id")

    def status(self, ui_url: str | None) -> SparkStatus | None:
        """What Spark knows of the application, for all collectors: read in its JVM, or at `ui_url`, if that is given.
        None where neither can be done, and for WITHOUT_STATUS_SECONDS after that. Raises what Spark raises."""
        with self._status_lock:
            if self._status is None and time.monotonic() >= self._status_due:
                self._status = self._find_status(ui_url)
                self._status_due = time.monotonic() + WITHOUT_STATUS_SECONDS
            return self._status

    def _find_status(self, ui_url: str | None) -> SparkStatus | None:
        if ui_url is None:
            return self._driver_status() if self.classic else None
        app_id = self.app_id
        return SparkRest(ui_url, app_id) if app_id is not None else None

    def _driver_status(self) -> SparkStatus | None:
        from ledgerops.agent.driver_status import DriverStatus

        try:
            return DriverStatus(self.spark)
        except Exception as error:  # some platforms let Python call a part of the JVM only
            log.info("tasks and executors cannot be read in the driver's JVM (%.200s)", error)
        url = self.spark.sparkContext.uiWebUrl
        return SparkRest(url, str(self.app_id)) if url else None

    def setting(self, key: str) -> str | None:
        """The value of a setting of the session as text; None where it is not set. Raises what Spark raises."""
        value = self.spark.conf.get(key, None)
        return None if value is None else str(value)

    def active(self) -> list[ActiveQuery]:
        """The queries that run now. Raises what Spark raises, and TimeoutError; see `call`."""
        return self.call(
            lambda: [ActiveQuery(str(each.id), str(each.runId), each.name, each) for each in self.spark.streams.active]
        )

    def call(self, question: Callable[[], Returned]) -> Returned:
        """The answer to a question to Spark. Raises TimeoutError when a Connect server gives none within CALL_SECONDS:
        its client tries again for minutes when the server is gone. While one question waits, no other is asked. Call it
        from one thread."""
        if self.classic:
            return question()
        try:
            return self._questions.within(question, CALL_SECONDS)
        except TimeoutError as error:
            raise TimeoutError(f"the Connect server: {error}") from None

    def work(self, run_id: str) -> dict[str, int]:
        """The newest job that a run has begun, as a number that grows, and counts of the tasks of its running jobs;
        empty on Spark Connect. Raises what Spark raises."""
        if not self.classic:
            return {}
        jobs, stages = self._stages(run_id)
        return {
            "jobs": jobs,
            "tasks": sum(stage.numTasks for stage in stages),
            "tasks_done": sum(stage.numCompletedTasks for stage in stages),
            "tasks_running": sum(stage.numActiveTasks for stage in stages),
        }

    def running_stages(self, run_id: str) -> frozenset[int]:
        """The stages of a run's running jobs, of a classic session. Raises what Spark raises."""
        return frozenset(stage.stageId for stage in self._stages(run_id)[1])

    def threads(self, wanted: Callable[[str], object]) -> Threads:
        """As `driver_threads`, of a classic session."""
        from ledgerops.agent.driver_status import driver_threads

        return driver_threads(self.spark, wanted)

    def _stages(self, run_id: str) -> tuple[int, list[Any]]:
        """A number that grows with each job of a run, and the stages of the jobs that run. Spark remembers a thousand
        that have ended, of all queries: they cannot be counted, and are not asked for."""
        context = self.spark.sparkContext
        tracker, text = context.statusTracker(), context._jvm.java.util.Arrays.toString  # py4j asks for each item
        # Spark names the group of a query's jobs after its run
        numbers = orjson.loads(text(tracker._jtracker.getJobIdsForGroup(run_id)))
        active = set(numbers).intersection(orjson.loads(text(tracker._jtracker.getActiveJobIds())))
        jobs = [job for job in map(tracker.getJobInfo, sorted(active)) if job is not None and job.status == "RUNNING"]
        stages = (stage for job in jobs for stage in map(tracker.getStageInfo, job.stageIds))
        return max(numbers, default=-1) + 1, [stage for stage in stages if stage is not None]

    def gone(self, run_id: str) -> None:
        """Releases what is held for a run whose end Spark did not report."""
        if self._connections is not None:
            self._connections.end(run_id)

    def listen_again(self) -> None:
        """Adds the listener anew where a broken stream to the Connect server has thrown all listeners out."""
        if self._remove is not None and self.alive and not self._listens():
            self._remove, self._listens = add_connect_listener(self.spark, self._sink, self.sent_plans.note)

    def close(self, seconds: float = REMOVE_SECONDS) -> None:
        """Removes the listener, and asks nothing more. May be called twice, and after the session was stopped."""
        self._questions.close()
        remove, self._remove = self._remove, None
        if remove is None or not self.alive:
            return
        # a JVM that hangs does not answer, and Connect waits for the server to end the stream of events
        try:
            within(lambda: quietly(remove), seconds)
        except RuntimeError:  # no more threads
            quietly(remove)
        except TimeoutError:
            log.warning("Spark did not remove the listener within %g s; not waiting any longer", REMOVE_SECONDS)


def quietly(close: Callable[[], object]) -> None:
    """Closes what may be going away: an error is for the debug log only."""
    try:
        close()
    except Exception as error:
        log.debug("while closing: %s", error)


def is_classic(session: Any) -> bool:
    """Whether a session runs in this driver's JVM: False for Spark Connect."""
    return "connect" not in type(session).__module__.split(".")


def application_name(session: Any) -> str | None:
    """spark.app.name; None where a server does not give it."""
    try:
        name = session.conf.get("spark.app.name", None)
        return str(name) if name else None
    except Exception as error:  # a shared cluster may hide its settings from a client
        log.info("the name of the application is unknown (%.200s): set `app` to have it as a label", error)
        return None


def session_key(session: Any) -> str:
    """The same for all Python objects that stand for one session."""
    if is_classic(session):
        return str(session._jsparkSession.sessionUUID())
    return str(session.session_id if hasattr(session, "session_id") else session._session_id)
