"""Spark's streaming events. A callback fetches the event's JSON text and queues it. It does nothing else, except
that the py4j connection of a query's own thread is closed with the query.

There are two interfaces: Java's through py4j, because PySpark's own listener copies every field of a progress record in
a round trip of its own, and on Spark Connect, which has no JVM here, the official StreamingQueryListener.
"""

import contextlib
import re
import time
from collections.abc import Callable
from typing import Any

import orjson

from ledgerops.agent.queue import EventQueue
from ledgerops.common.deadline import within
from ledgerops.errors import UserError
from ledgerops.model.records import ObservationKind

ADD_SECONDS = 60.0  # for a Connect server to take a listener
ERROR = re.compile(r"\b[A-Z]\w*Error\b")  # an exception of Java's that no program is expected to go on after
WRAPPED = '{"progress":'  # what a progress event writes before its record


class EventSink:
    """Queues events, times each callback and hides its errors from Spark. `origin` tells the worker the session."""

    def __init__(self, queue: EventQueue, origin: object = None) -> None:
        self.queue = queue
        self.origin = origin

    def take(self, kind: ObservationKind, fetch: Callable[[], str | bytes]) -> None:
        """Queues the JSON text that `fetch` returns and counts the callback and its seconds. Raises nothing."""
        began = time.perf_counter()
        stats = self.queue.stats
        failed = False
        try:
            self.queue.put(kind, fetch(), origin=self.origin)
        except Exception:  # the gateway may be closing; Spark must see no error in any case
            failed = True
        with stats.lock:
            stats.events[kind] += 1
            stats.callbacks += 1
            stats.callback_seconds += time.perf_counter() - began
            if failed:
                stats.collector_errors["listener"] += 1


class Connections:
    """Closes the connection that py4j keeps for the thread of a query once the query has ended. One for each session.

    Each Java thread that calls Python gets a socket, and a thread in Python that serves it. py4j keeps both until the
    process ends (PythonClient.connections of py4j 0.10.9.9 holds connections that no thread needs any more). Spark
    reports a query's start on the query's own thread, so a driver that starts a query every minute would run out of
    file handles within a day. The same connection serves foreachBatch; nothing calls Python on that thread after the
    query's end. A connection that cannot be closed stays open, as it would without this class: no error is raised.
    """

    def __init__(self, client: Any) -> None:
        """`client`: py4j's callback client on the Java side."""
        self._client = client
        self._of_run: dict[str, Any] = {}

    def __len__(self) -> int:
        return len(self._of_run)

    def began(self, started: str) -> None:
        """Remembers the connection of the thread that calls, for the run of this event."""
        with contextlib.suppress(Exception):  # a gateway without a thread for each caller shares its connections
            self._of_run[orjson.loads(started)["runId"]] = self._client.getPerThreadConnection()

    def ended(self, terminated: str) -> None:
        """Closes the connection of the run of this event."""
        with contextlib.suppress(Exception):
            self.end(orjson.loads(terminated)["runId"])

    def end(self, run_id: str) -> None:
        """Closes a run's connection on both sides. Any thread may call it, and twice: Spark may have lost the event."""
        with contextlib.suppress(Exception):
            connection = self._of_run.pop(run_id, None)
            if connection is not None:
                connection.shutdown()
                self._client.connectionStopped(connection)  # Java's side forgets it


class JavaListener:
    """The py4j side of Spark's PythonStreamingQueryListener. Its callbacks come on different threads."""

    def __init__(self, sink: EventSink, connections: Connections, jvm_ends: Callable[[], bool]) -> None:
        """`jvm_ends`: whether the JVM is about to end, as it is once it got a signal."""
        self._sink, self._connections, self._jvm_ends = sink, connections, jvm_ends

    def onQueryStarted(self, event: Any) -> None:
        self._sink.take("started", lambda: self._text(event, self._connections.began))

    def onQueryProgress(self, event: Any) -> None:
        self._sink.take("progress", lambda: unwrapped(event.json()))

    def onQueryIdle(self, event: Any) -> None:
        self._sink.take("idle", event.json)

    def onQueryTerminated(self, event: Any) -> None:
        self._sink.take("terminated", lambda: self._end(self._text(event, self._connections.ended)))

    def _end(self, text: str) -> str | bytes:
        """A query that the end of its JVM made fail has not failed: what it needs next is gone, so exceptions are of
        many kinds. An error such as OutOfMemoryError may be why the JVM ends."""
        data = orjson.loads(text)
        exception = data.get("exception") or ""
        is_error = ERROR.search(exception.partition("\n")[0]) or "OutOfMemoryError" in exception
        if exception and not is_error and self._is_ending():
            return orjson.dumps({**data, "exception": None, "with_application": True})
        return text

    def _is_ending(self) -> bool:
        try:
            return self._jvm_ends()
        except Exception:  # a platform that does not let Python ask, or a gateway that closes
            return False

    @staticmethod
    def _text(event: Any, then: Callable[[str], None]) -> str:
        text = str(event.json())
        then(text)
        return text

    class Java:
        implements = ("org.apache.spark.sql.streaming.PythonStreamingQueryListener",)


def unwrapped(text: str) -> str:
    """The progress record within its event: `event.progress().json()` without its second round trip."""
    return text[len(WRAPPED) : -1] if text.startswith(WRAPPED) else text


def add_java_listener(session: Any, sink: EventSink) -> tuple[Callable[[], None], Connections]:
    """Registers with a classic session's listener bus. Returns what removes it again, and its runs' connections."""
    from py4j.java_gateway import java_import
    from pyspark.java_gateway import ensure_callback_server_started

    gateway = session.sparkContext._gateway
    java_import(gateway.jvm, "org.apache.spark.sql.streaming.*")
    ensure_callback_server_started(gateway)
    connections = Connections(gateway.java_gateway_server.getCallbackClient())
    listener = JavaListener(
        sink, connections, lambda: bool(gateway.jvm.org.apache.spark.util.ShutdownHookManager.inShutdown())
    )
    streams = session._jsparkSession.streams()
    wrapped = gateway.jvm.PythonStreamingQueryListenerWrapper(listener)
    streams.addListener(wrapped)
    return lambda: streams.removeListener(wrapped), connections


def add_connect_listener(
    session: Any, sink: EventSink, began: Callable[[str], None]
) -> tuple[Callable[[], None], Callable[[], bool]]:
    """Registers with a Connect session's client-side bus (Spark 4.0 on). Returns what removes it again, and what says
    whether it is still there. `began` is called with the id of each run that starts, on the thread that reports it, and
    raises nothing. Raises UserError where the client is older, TimeoutError where the server does not answer, and what
    Spark raises."""
    import pyspark
    from pyspark.sql.streaming.listener import StreamingQueryListener

    version = getattr(pyspark, "__version__", "")
    if version.startswith("3."):
        raise UserError(
            f"the Spark Connect client of PySpark {version} runs listeners on the server; "
            "on Spark Connect ledgerops needs PySpark 4.0 or newer"
        )

    class ConnectListener(StreamingQueryListener):  # type: ignore[misc]  # pyspark is not checked
        def onQueryStarted(self, event: Any) -> None:
            began(str(event.runId))
            sink.take("started", lambda: _fields(event, "id", "runId", "name", "timestamp"))

        def onQueryProgress(self, event: Any) -> None:
            sink.take("progress", lambda: event.progress.json)

        def onQueryIdle(self, event: Any) -> None:
            sink.take("idle", lambda: _fields(event, "id", "runId", "timestamp"))

        def onQueryTerminated(self, event: Any) -> None:
            sink.take("terminated", lambda: _fields(event, "id", "runId", "exception", "errorClassOnException"))

    listener = ConnectListener()
    # PySpark's thread of events is a daemon if the thread that adds the first listener is one: any other would keep a
    # script from ending until the next event
    within(lambda: session.streams.addListener(listener), ADD_SECONDS)
    bus = getattr(session.streams, "_sqlb", None)
    return (lambda: _remove(session.streams, bus, listener)), lambda: bus is None or listener in bus._listener_bus


def _remove(streams: Any, bus: Any, listener: Any) -> None:
    """Spark waits for the thread of events under a lock that this thread may want (SPARK-59623): it is not shown."""
    thread = getattr(bus, "_execution_thread", None)
    if thread is not None:
        with bus._lock:
            bus._execution_thread = None
    try:
        streams.removeListener(listener)
    finally:
        if thread is not None:
            with bus._lock:
                if bus._listener_bus and bus._execution_thread is None:  # of others, or the server did not answer
                    bus._execution_thread = thread


def _fields(event: Any, *names: str) -> bytes:
    values = ((name, getattr(event, name)) for name in names)
    return orjson.dumps({name: value if value is None else str(value) for name, value in values})
