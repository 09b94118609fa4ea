import json
import threading
import time
from contextlib import suppress
from types import SimpleNamespace
from uuid import UUID

import pytest
from pyspark.sql.connect.streaming.query import StreamingQueryListenerBus
from pyspark.sql.streaming.listener import QueryIdleEvent, StreamingQueryListener

from ledgerops.agent.listener import Connections, EventSink, JavaListener, add_connect_listener, unwrapped
from ledgerops.agent.queue import EventQueue
from ledgerops.common.deadline import within
from ledgerops.metrics.self_watch import SelfStats
from tests.agent.fakes import RemoteSession
from tests.build import spark_json
from tests.tables import cases


class JavaEvent:
    """What py4j hands to a callback: here its JSON is at hand."""

    def __init__(self, text):
        self.text = text if isinstance(text, str | None) else json.dumps(text)

    def json(self):
        if self.text is None:
            raise ConnectionError("the gateway is gone")
        return self.text


class Thread:
    """A query's thread in Java: py4j gives it a connection, and may be told to shut it down."""

    open = True

    def shutdown(self):
        self.open = False


class CallbackClient:
    """Java's side of py4j's callbacks: `calling` is the thread that calls now."""

    def __init__(self):
        self.calling = None
        self.kept = []

    def getPerThreadConnection(self):
        return self.calling

    def connectionStopped(self, connection):
        self.kept.remove(connection)

    def thread(self):
        self.calling = Thread()
        self.kept.append(self.calling)
        return self.calling


def listener(client=None, jvm_ends=lambda: False, size=1000):
    queue, connections = EventQueue(SelfStats(), size), Connections(client)
    return queue, connections, JavaListener(EventSink(queue, origin="the session"), connections, jvm_ends)


def began(heard, client, run_id):
    thread = client.thread()
    heard.onQueryStarted(JavaEvent({"runId": run_id}))
    return thread


def test_the_connection_of_a_run_is_closed_with_the_run_and_no_other():
    client = CallbackClient()
    _, connections, heard = listener(client)
    first, second = began(heard, client, "run-1"), began(heard, client, "run-2")
    for run_id in ("run-1", "run-1", "a run that began before us"):
        heard.onQueryTerminated(JavaEvent({"runId": run_id}))
    assert (first.open, second.open, client.kept, len(connections)) == (False, True, [second], 1)


def test_a_run_whose_end_spark_did_not_tell_keeps_no_connection_either():
    client = CallbackClient()
    _, connections, heard = listener(client)
    lost = began(heard, client, "run-1")
    connections.end("run-1")
    assert (lost.open, client.kept, len(connections)) == (False, [], 0)


def test_a_progress_event_is_queued_as_its_record():
    queue, _, heard = listener()
    record = json.dumps(spark_json(), separators=(",", ":"))
    heard.onQueryProgress(JavaEvent(f'{{"progress":{record}}}'))
    [event] = queue.take(0.0)
    assert (event.kind, event.data, event.origin) == ("progress", record, "the session")
    assert unwrapped('{"id":"progress"}') == '{"id":"progress"}', "a record without its event is left as it is"


def test_each_kind_of_event_is_told_apart():
    queue, _, heard = listener()
    heard.onQueryStarted(JavaEvent('{"a":1}'))
    heard.onQueryIdle(JavaEvent('{"b":1}'))
    heard.onQueryTerminated(JavaEvent('{"c":1}'))
    told = [(event.kind, event.data) for event in queue.take(0.0)]
    assert told == [("started", '{"a":1}'), ("idle", '{"b":1}'), ("terminated", '{"c":1}')]


@cases(
    "exception, jvm_ends, failed",
    ("by the end of the application", "java.lang.NullPointerException: x is null", True, False),
    ("by itself", "java.lang.NullPointerException: x is null", False, True),
    ("planning", "x.SparkException: [INTERNAL_ERROR] no\nCaused by: y.SomeError", True, False),
    ("why the JVM ends", "java.lang.OutOfMemoryError: Java heap space", True, True),
    ("below the first line", "x.E: no\nCaused by: java.lang.OutOfMemoryError", True, True),
    ("stopped in order", None, True, False),
)
def test_a_query_that_the_end_of_its_application_makes_fail_has_not_failed(exception, jvm_ends, failed):
    queue, _, heard = listener(jvm_ends=lambda: jvm_ends)
    heard.onQueryTerminated(JavaEvent({"runId": "run-1", "exception": exception}))
    [event] = queue.take(0.0)
    data = json.loads(event.data)
    assert (data["exception"] is not None) == failed
    assert data.get("with_application", False) == (exception is not None and not failed)


def test_a_jvm_that_cannot_be_asked_hides_no_failure():
    def refuses():
        raise TypeError("'JavaPackage' object is not callable")

    queue, _, heard = listener(jvm_ends=refuses)
    heard.onQueryTerminated(JavaEvent({"runId": "run-1", "exception": "java.lang.NullPointerException"}))
    [event] = queue.take(0.0)
    assert "NullPointerException" in event.data


def test_callbacks_are_counted_and_timed():
    queue, _, heard = listener()
    began = time.perf_counter()
    for _ in range(2):
        heard.onQueryIdle(JavaEvent("{}"))
    passed = time.perf_counter() - began

    assert (queue.stats.events, queue.stats.callbacks) == ({"idle": 2}, 2)
    assert 0 < queue.stats.callback_seconds <= passed


def test_an_error_in_a_callback_is_counted_and_a_full_queue_drops_without_waiting():
    queue, _, heard = listener(size=1)
    heard.onQueryProgress(JavaEvent(None))
    assert (queue.take(0.0), queue.stats.collector_errors) == ([], {"listener": 1})
    for _ in range(3):
        heard.onQueryIdle(JavaEvent("{}"))
    assert (queue.stats.dropped, queue.stats.collector_errors) == (2, {"listener": 1})


class ConnectStreams(RemoteSession):
    """The client's side of Spark Connect: it starts a thread for events when the first listener is added."""

    events = None

    def addListener(self, listener):
        self.events = self.events or threading.Thread(target=lambda: None)
        super().addListener(listener)


def test_the_events_of_a_connect_server_do_not_keep_a_script_from_ending():
    session = ConnectStreams()
    remove, listens = add_connect_listener(session, EventSink(EventQueue(SelfStats())), lambda run: None)
    assert len(session.listeners) == 1 and session.events.daemon and listens()
    remove()
    assert session.listeners == []


class PendingBus(StreamingQueryListenerBus):
    """PySpark's own, with a server that sends one more event after it was told to end the stream."""

    def __init__(self):
        super().__init__(SimpleNamespace(_session=SimpleNamespace(client=self)))
        self.told, self.answers = threading.Event(), True

    def execute_command(self, command):
        if not self.answers:
            raise ConnectionError
        self.told.set()

    def _register_server_side_listener(self):
        def stream():
            self.told.wait(60)
            yield {"streaming_query_listener_events_result": SimpleNamespace(events=[None])}

        return stream()

    def deserialize(self, event):
        return QueryIdleEvent.fromJson({"id": str(UUID(int=1)), "runId": str(UUID(int=2)), "timestamp": "2026-11-21"})


class Theirs(StreamingQueryListener):
    """A listener of the application."""

    def onQueryStarted(self, event): ...

    def onQueryProgress(self, event): ...

    def onQueryTerminated(self, event): ...


@pytest.fixture
def connect():
    """The bus of a session, what removes our listener from it, and what says whether it is there."""
    bus = PendingBus()
    session = SimpleNamespace(streams=SimpleNamespace(addListener=bus.append, removeListener=bus.remove, _sqlb=bus))
    yield bus, *add_connect_listener(session, EventSink(EventQueue(SelfStats())), lambda run: None)
    bus.told.set()
    if bus._execution_thread is not None:
        bus._execution_thread.join(60)


def test_an_event_that_comes_while_the_last_listener_is_removed_locks_nobody_out(connect):
    bus, remove, listens = connect
    thread = bus._execution_thread
    within(remove, 60.0)
    thread.join(60)
    assert not thread.is_alive() and not listens()
    theirs = Theirs()
    within(lambda: bus.append(theirs), 60.0)
    assert bus._listener_bus == [theirs]


@pytest.mark.parametrize("others", [True, False], ids=["one with other listeners", "one whose server does not answer"])
def test_a_bus_that_goes_on_keeps_its_thread(connect, others):
    bus, remove, listens = connect
    thread = bus._execution_thread
    if others:
        bus.append(Theirs())
    else:
        bus.answers = False
    with suppress(UserWarning):
        remove()
    assert (listens(), bus._execution_thread) == (not others, thread)
