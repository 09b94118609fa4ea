import json
import logging
import re
import socket
import sys
import threading
import time
import urllib.request
from contextlib import ExitStack, closing
from types import SimpleNamespace

import psutil
import pytest
from prometheus_client.parser import text_string_to_metric_families

import ledgerops
from ledgerops.agent import attach as watch_module
from ledgerops.agent.attach import Hub
from ledgerops.agent.poller import Poller
from ledgerops.agent.queue import EventQueue
from ledgerops.agent.sessions import Session
from ledgerops.agent.spark_rest import SparkRest
from ledgerops.config import load
from ledgerops.errors import UserError
from ledgerops.metrics.self_watch import SelfStats
from ledgerops.model.recording import read
from ledgerops.model.records import Observation
from tests.agent.fakes import FakeSession, RemoteSession
from tests.programs import python, until
from tests.tables import cases

SPARKS = ("started", "progress", "idle", "terminated")  # in their order; a collector may still be asking at the end


def get(watch, path):
    with urllib.request.urlopen(watch.url + path, timeout=60) as answer:
        return answer.read().decode()


def value(watch, name, **labels):
    for family in text_string_to_metric_families(get(watch, "/metrics")):
        for sample in family.samples:
            if sample.name == name and labels.items() <= sample.labels.items():
                return sample.value
    return None


def counted(session, name, interval="500 milliseconds"):
    from pyspark.sql import functions as F

    counts = (
        rates(session, 100)
        .withWatermark("timestamp", "10 seconds")
        .groupBy(F.window("timestamp", "5 seconds"), (F.col("value") % 3).alias("customer_id"))
        .count()
    )
    written = counts.writeStream.queryName(name).format("noop").outputMode("update")
    return written.trigger(processingTime=interval).start()


@pytest.fixture
def attach():
    """Attaches on a free port, and detaches in the end."""
    with ExitStack() as made:
        yield lambda session, **settings: made.enter_context(
            closing(ledgerops.attach(session, **{"port": 0, **settings}))
        )


@pytest.fixture
def stopping():
    """Takes queries, and stops them in the end."""
    queries = []
    yield lambda query: queries.append(query) or query
    for query in queries:
        query.stop()


@pytest.fixture
def started(spark, stopping):
    """Starts queries that count."""
    return lambda *args, session=None, **options: stopping(counted(session or spark, *args, **options))


@pytest.fixture
def hub():
    with closing(Hub(load(port=0))) as made:
        yield made


def rates(spark, rows=10):
    return spark.readStream.format("rate").option("rowsPerSecond", rows).load()


@pytest.mark.parametrize(("exiting", "told"), [(True, "RuntimeError: no '<masked>'"), (False, None)])
def test_at_the_exit_of_python_the_error_is_kept_that_ended_the_application(hub, monkeypatch, exiting, told):
    monkeypatch.setattr(sys, "last_value", RuntimeError("no 'key 4111111111111111'"), raising=False)
    data = {"id": "id", "runId": "run", "name": "orders", "timestamp": "2026-11-30T12:00:00.000Z"}
    hub.registry.ingest(Observation(0.0, "started", None, data), SimpleNamespace(classic=True))
    hub.worker.start()
    hub.close(exiting)

    ended = hub.registry.queries["orders"].history.ended
    assert (ended.with_application, ended.application_error) == (exiting, told)


def test_a_query_is_seen_from_its_start_to_its_end(spark, attach, started, tmp_path):
    watch = attach(spark, recording=tmp_path, host_interval=1)
    query = started("seen")
    until(lambda: (value(watch, "ledgerops_batches_total", query="seen") or 0) >= 4)

    assert value(watch, "ledgerops_query_active", query="seen", app="ledgerops-tests") == 1.0
    assert value(watch, "ledgerops_watermark_lag_seconds", query="seen") > 5
    assert [each["query"] for each in watch.diagnose()["queries"]] == ["seen"]
    assert json.loads(get(watch, "/diagnosis?query=seen"))["version"] == 1

    query.stop()
    until(lambda: value(watch, "ledgerops_query_active", query="seen") == 0.0)
    assert value(watch, "ledgerops_batches_total", query="seen") >= 4  # a total stays, what was measured goes
    assert value(watch, "ledgerops_watermark_lag_seconds", query="seen") is None
    watch.close()
    kinds = [seen.kind for seen in read(tmp_path) if seen.query == "seen" and seen.kind in SPARKS]
    assert kinds[0] == "started" and kinds[-1] == "terminated" and kinds.count("progress") >= 4


def test_queries_that_come_and_go_leave_no_thread_and_no_socket_behind(spark, attach, started):
    watch = attach(spark)
    driver = psutil.Process()
    jvm = next(child for child in driver.children() if "pyspark-shell" in child.cmdline())  # Kafka's is there, too

    def sockets():
        return [len(process.net_connections("tcp")) for process in (driver, jvm)]

    def run(count):
        """Starts, sees and stops so many queries, one after the other."""
        for _ in range(count):
            query = started("short", interval="0 seconds")
            until(lambda: value(watch, "ledgerops_query_active", query="short") == 1.0)
            query.stop()
            until(lambda: value(watch, "ledgerops_query_active", query="short") == 0.0)

    def opened():
        return threading.active_count(), *sockets()

    run(2)
    first = opened()
    run(6)
    # a collector may just be asking, and a socket just closing: what was left behind stays
    until(lambda: max(now - then for now, then in zip(opened(), first, strict=True)) < 3)


def test_plan_tasks_host_and_executors_are_collected(spark, attach, started):
    watch = attach(spark, host_interval=1, tasks_interval=1)
    started("collected")

    def lines(kind):
        seen = [json.loads(line) for line in get(watch, "/recording").splitlines()]
        return [each["data"] for each in seen if each["kind"] == kind]

    plan = until(lambda: [data for data in lines("plan") if data["keys"]])[0]
    assert (plan["trigger"], plan["trigger_interval"]) == ("processing_time", 0.5)
    assert (plan["keys"], plan["watermarks"]) == (["window", "customer_id"], {"timestamp": 10.0})
    assert (plan["output_mode"], plan["stateful"], plan["shuffle_partitions"]) == ("update", True, 2)
    assert (plan["app_name"], plan["spark_version"]) == ("ledgerops-tests", spark.version)

    stage = until(lambda: [data["stages"][-1] for data in lines("tasks") if data["stages"][-1]["records"]])[0]
    assert stage["reads_shuffle"] and stage["tasks"] == 2
    host = until(lambda: [data for data in lines("host") if data["executors"]])[0]
    assert {"driver_python", "driver_jvm"} <= {process["role"] for process in host["processes"]}
    until(lambda: value(watch, "ledgerops_executor_cores", executor="driver") == 2.0)


@pytest.mark.parametrize("again", [False, True], ids=["for the first time", "after a close"])
def test_a_query_that_runs_already_is_taken_up(spark, attach, started, again):
    query = started("early")
    until(lambda: query.lastProgress)
    if again:
        attach(spark).close()
    watch = attach(spark)

    until(lambda: value(watch, "ledgerops_batches_total", query="early"))
    assert value(watch, "ledgerops_query_start_timestamp_seconds", query="early") > 0


def test_a_batch_that_does_not_end_is_seen_while_it_runs(spark, attach, tmp_path):
    gate = tmp_path / "open"

    def hold(frame, number):
        while number == 1 and not gate.exists():
            time.sleep(0.05)

    def running():
        return value(watch, "ledgerops_batch_running_seconds", query="held")

    watch = attach(spark, watchdog_interval=0.2)
    written = rates(spark).writeStream.queryName("held").foreachBatch(hold)
    query = written.trigger(processingTime="500 milliseconds").start()
    try:
        seconds = until(running)
        assert seconds > 2
        until(lambda: (running() or 0.0) > seconds)
        gate.touch()
        until(lambda: running() is None)
    finally:
        gate.touch()
        query.stop()


def test_the_files_of_a_batch_are_counted_and_their_ages_told(spark, attach, stopping, tmp_path):
    landing = tmp_path / "in"
    landing.mkdir()
    for number in range(30):
        (landing / f"part-{number}.txt").write_text("row\n")
    watch = attach(spark, recording=tmp_path / "recording")
    rows = spark.readStream.option("maxFilesPerTrigger", 2).text(str(landing))
    query = stopping(rows.writeStream.queryName("landed").format("noop").trigger(processingTime="1 second").start())
    until(lambda: value(watch, "ledgerops_source_batch_files", query="landed", source="FileStreamSource") == 2)
    until(lambda: (value(watch, "ledgerops_source_file_age_seconds", query="landed", kind="newest") or 0.0) > 1)
    query.stop()
    watch.close()

    told = [seen.data for seen in read(tmp_path / "recording") if seen.kind == "files"]
    assert told[0]["sources"]["FileStreamSource"]["folder_changed"] == pytest.approx(landing.stat().st_mtime)
    assert len({data["batch_id"] for data in told}) == len(told)


def test_what_a_run_of_seconds_wrote_to_a_folder_is_counted_whole(spark, attach, stopping, tmp_path):
    (tmp_path / "in").mkdir()
    for number in range(5):
        (tmp_path / "in" / f"part-{number}.txt").write_text("row\n")
    watch = attach(spark, recording=tmp_path / "recording")
    rows = spark.readStream.option("maxFilesPerTrigger", 1).text(str(tmp_path / "in"))
    written = rows.writeStream.queryName("now").option("checkpointLocation", str(tmp_path / "checkpoint"))
    stopping(written.trigger(availableNow=True).start(str(tmp_path / "out"))).awaitTermination(120)
    watch.close()

    told = [seen.data for seen in read(tmp_path / "recording") if seen.kind == "tables"]
    assert [commit["batch_id"] for data in told for commit in data["commits"]] == [0, 1, 2, 3, 4]


def test_a_failure_is_counted_with_a_short_reason(spark, attach, stopping, tmp_path):
    watch = attach(spark, recording=tmp_path)
    failing = rates(spark).selectExpr("raise_error('boom') AS x")
    stopping(failing.writeStream.queryName("bad").format("noop").start())
    until(lambda: value(watch, "ledgerops_query_failures_total", query="bad"))
    watch.close()

    [ended] = [seen for seen in read(tmp_path) if seen.kind == "terminated"]
    assert len(ended.data["exception"]) <= 500 and "\n" not in ended.data["exception"]


def test_attaching_twice_gives_the_same_watch_and_sessions_share_an_exporter(spark, attach, started):
    other = spark.newSession()
    watch, second = attach(spark), attach(other)
    started("of_one")
    started("of_other", session=other)

    assert ledgerops.attach(spark) is watch
    assert second is not watch and second.url == watch.url
    for name in ("of_one", "of_other"):
        until(lambda name=name: value(watch, "ledgerops_batches_total", query=name))

    watch.close()
    assert watch.url is None
    assert value(second, "ledgerops_query_active", query="of_other") == 1.0
    second.close()
    second.close()


def test_a_taken_port_is_said_and_a_free_one_is_used(spark, attach, caplog):
    with socket.create_server(("127.0.0.1", 0)) as taken, caplog.at_level(logging.WARNING, "ledgerops"):
        port = taken.getsockname()[1]
        watch = attach(spark, port=port)

    assert watch.error is None and watch.port not in (None, port)
    assert [record.getMessage() for record in caplog.records] == [
        f"port {port} is in use (Address already in use): serving at {watch.url} instead"
    ]
    assert get(watch, "/healthz") == "ok\n"


def test_instrumented_rows_give_latency_and_hot_keys(spark, attach, stopping):
    from pyspark.sql import functions as F

    watch = attach(spark)
    rows = rates(spark, 100).select(
        F.when(F.col("value") % 10 > 0, F.col("timestamp") - F.expr("INTERVAL 4 SECONDS")).alias("event_time"),
        F.when(F.col("value") % 5 > 0, "whale").otherwise(F.col("value").cast("string")).alias("customer_id"),
    )
    rows = ledgerops.instrument(rows, event_time="event_time", key="customer_id", lateness=3.0)
    written = rows.writeStream.queryName("instrumented").format("noop")
    stopping(written.trigger(processingTime="500 milliseconds").start())
    until(lambda: value(watch, "ledgerops_event_latency_seconds_count", query="instrumented"))
    lines = [json.loads(line) for line in get(watch, "/recording?query=instrumented").splitlines()]
    share = value(watch, "ledgerops_hot_key_share", query="instrumented")

    batches = [line["data"] for line in lines if line["kind"] == "progress"]
    observed = [batch.get("observedMetrics", {}).get("ledgerops", {}) for batch in batches]
    newest = [row for row in observed if row.get("rows")][-1]
    assert newest["latency_le_15"] == newest["late_candidates"] == newest["rows"] * 0.9
    assert newest["latency_le_2"] == 0 < newest["latency_sum"]
    assert newest["key"] == "customer_id"
    assert newest["hot_keys"][0]["item"] != "whale" and len(newest["hot_keys"][0]["item"]) == 12
    assert share == pytest.approx(0.8, abs=0.05)


def test_an_unknown_column_cannot_be_instrumented(spark):
    with pytest.raises(UserError, match="no column 'at' to instrument; there are id"):
        ledgerops.instrument(spark.range(1), event_time="at")


class UnusedSession:
    """A session that is refused before it is asked for anything."""

    session_id = "s"
    __module__ = "pyspark.sql.connect.session"


NO_PORT = "UserError: arguments: port must be a whole number, not 'http'"


@cases(
    "session, settings, error",
    ("what is no session", object(), {"port": 0}, r"AttributeError: .*"),
    ("bad settings", UnusedSession(), {"port": "http"}, NO_PORT),
)
def test_what_cannot_be_watched_does_not_stop_the_job(caplog, session, settings, error):
    watch = ledgerops.attach(session, **settings)
    assert re.fullmatch(error, watch.error)
    assert (watch.url, watch.port, watch.diagnose()["queries"]) == (None, None, [])
    for _ in range(2):
        watch.close()
    assert watch_module._hub is None


def test_an_unknown_variable_is_logged(caplog, monkeypatch):
    monkeypatch.setenv("LEDGEROPS_PROT", "1")
    ledgerops.attach(UnusedSession(), port="http")
    assert "variable LEDGEROPS_PROT is unknown and ignored; did you mean LEDGEROPS_PORT?" in caplog.messages


def test_sessions_that_are_stopped_without_a_word_leave_nothing_behind(attach):
    for number in range(5):
        session = RemoteSession(f"session-{number}")
        last = attach(session)
        watch_module._hub.sessions[session.session_id].active()
        session.is_stopped = True
    assert list(watch_module._watches.values()) == [last]
    until(lambda: [each.name for each in threading.enumerate()].count("ledgerops-connect") == 1)
    assert [each.spark for each in watch_module._hub.sessions.values()] == [session]


def test_a_connect_client_that_runs_listeners_on_the_server_is_refused_with_what_is_needed(attach, monkeypatch):
    monkeypatch.setattr("pyspark.__version__", "3.5.7")
    session = RemoteSession()

    assert attach(session).error == (
        "UserError: the Spark Connect client of PySpark 3.5.7 runs listeners on the server; on Spark Connect ledgerops "
        "needs PySpark 4.0 or newer"
    )
    assert session.listeners == [] and watch_module._hub is None


def test_of_two_sessions_the_one_that_goes_on_stays_watched(attach):
    first, second = RemoteSession("first"), RemoteSession("second")
    watch, other = attach(first), attach(second)

    assert ledgerops.attach(first) is watch and len(watch_module._watches) == 2
    watch.close()
    assert (first.listeners, len(second.listeners)) == ([], 1)
    assert get(other, "/healthz") == "ok\n"
    other.close()
    assert watch_module._hub is None


def test_a_driver_that_can_start_no_more_threads_is_left_as_it_was(attach, monkeypatch):
    def start(poller):
        if poller.name == "host":
            raise RuntimeError("can't start new thread")
        poller._thread.start()

    before, session = set(threading.enumerate()), RemoteSession()
    with monkeypatch.context() as patch:
        patch.setattr(Poller, "start", start)
        watch = attach(session)

    assert watch.error == "RuntimeError: can't start new thread"
    assert session.listeners == [] and watch_module._hub is None
    until(lambda: not set(threading.enumerate()) - before, 60, "the end of the threads that were started")
    assert get(attach(session), "/healthz") == "ok\n"


def test_a_collector_that_asks_while_its_session_is_closed_leaves_no_thread_behind(attach, monkeypatch):
    before, watch, close = set(threading.enumerate()), attach(RemoteSession()), Session.close
    late = []

    def asked_once_more(session, *seconds):
        session.call(threading.current_thread)
        close(session, *seconds)
        with pytest.raises(TimeoutError, match="nothing is asked any more"):
            session.call(threading.current_thread)
        late.append(session)

    monkeypatch.setattr(Session, "close", asked_once_more)
    watch.close()
    until(lambda: not set(threading.enumerate()) - before, 60, "the end of the threads that were started")
    assert len(late) == 1


def test_what_was_written_to_tables_is_asked_for_while_it_can_be_recorded(attach, monkeypatch):
    watch, recorded = attach(RemoteSession()), []
    hub = watch_module._hub
    monkeypatch.setattr(hub.tables, "close", lambda: recorded.append(hub.queue.put("tables", b"{}")))
    monkeypatch.setattr(hub.worker, "stop", lambda: recorded.append("no more"))
    watch.close()
    assert recorded == [True, "no more"]


def test_a_storage_of_tables_that_does_not_answer_holds_up_the_end_for_a_bounded_time_only(attach, monkeypatch):
    monkeypatch.setattr(watch_module, "TABLES_SECONDS", 0.1)
    watch, answers = attach(RemoteSession()), threading.Event()
    monkeypatch.setattr(watch_module._hub.tables, "close", lambda: answers.wait(3600))
    watch.close()
    assert not answers.is_set() and watch.url is None
    answers.set()


def test_a_driver_whose_working_folder_is_gone_is_watched(attach, monkeypatch, tmp_path):
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    watch = attach(RemoteSession())
    monkeypatch.undo()

    assert watch.error is None
    assert get(watch, "/healthz") == "ok\n"


CLOSED_BY_A_SIGNAL = """
import os, signal, threading
import ledgerops
from tests.agent.fakes import RemoteSession

class Slow(RemoteSession):
    __module__ = RemoteSession.__module__
    def removeListener(self, listener):
        os.kill(os.getpid(), signal.SIGUSR1)
        closed.wait(60)
        super().removeListener(listener)

closed = threading.Event()
first, second = ledgerops.attach(Slow("first"), port=0), ledgerops.attach(RemoteSession("second"))
signal.signal(signal.SIGUSR1, lambda *args: (second.close(), closed.set()))
first.close()
print(first.url, second.url)
"""


def test_a_signal_handler_may_close_a_watch_while_another_is_being_closed():
    done = python("-c", CLOSED_BY_A_SIGNAL)
    assert (done.returncode, done.stdout) == (0, "None None\n"), done.stderr


def test_collectors_that_hang_hold_the_end_up_once_and_not_one_after_the_other(attach):
    watch = attach(RemoteSession())
    hub, hung = watch_module._hub, threading.Event()
    for collector in hub.collectors:
        collector._collect = lambda: hung.wait(120)
        collector._interval = 0.0
        collector._stopping.set()  # ends the wait that is under way
        collector._thread.join(60)
        collector._stopping.clear()
        collector._thread = threading.Thread(target=collector._run, daemon=True)
        collector.start()
    began = time.monotonic()
    watch.close()
    took = time.monotonic() - began
    hung.set()

    assert len(hub.collectors) >= 6
    assert took < 2 * watch_module.STOP_SECONDS + 5.0, "the worker has 5 s of its own"


def test_a_server_that_hangs_holds_the_end_up_once_and_not_for_each_session(attach):
    hung = threading.Event()
    for number in range(20):
        session = RemoteSession(f"session-{number}")
        attach(session)
        session.removeListener = lambda listener: hung.wait(120)
    began = time.monotonic()
    watch_module._close_all()
    took = time.monotonic() - began
    hung.set()
    assert took < 10 * watch_module.REMOVE_SECONDS, "and not 20 times"


def test_a_listener_that_was_thrown_out_is_added_again_also_where_the_application_was_first(attach):
    class Remote(RemoteSession):
        __module__ = RemoteSession.__module__

        @property
        def _sqlb(self):
            return SimpleNamespace(_listener_bus=self.listeners)

    session = Remote()
    attach(session)
    [ours] = session.listeners
    session.listeners[:] = ["the application's"]
    for _ in range(2):
        watch_module._hub.sessions[session.session_id].listen_again()
    assert session.listeners[0] == "the application's"
    assert len(session.listeners) == 2 and session.listeners[1] is not ours


def test_what_a_run_works_on_is_asked_in_as_many_commands_whatever_it_has_done_before(spark, tmp_path, monkeypatch):
    def run(group, jobs, rows):
        spark.sparkContext.setJobGroup(group, "")
        for _ in range(jobs):
            rows.count()

    def commands():
        asked.clear()
        return session.work("r1"), len(asked)

    def waits(number, gate=tmp_path / "gate"):
        while not gate.exists():
            time.sleep(0.05)
        return number

    asked = []
    client = spark.sparkContext._gateway._gateway_client
    send = client.send_command
    session = Session(spark, EventQueue(SelfStats()))
    try:
        run("r1", 2, spark.range(1))
        monkeypatch.setattr(client, "send_command", lambda *args, **given: asked.append(args) or send(*args, **given))
        few, count = commands()
        run("r1", 2, spark.range(1))
        more, _ = commands()
        run("r1", 60, spark.range(1))
        run("r2", 1, spark.range(1))
        many, same = commands()
        assert many["jobs"] - more["jobs"] == 30 * (more["jobs"] - few["jobs"]) > 0
        assert (few["tasks"], many["tasks"]) == (0, 0)
        assert same == count

        running = threading.Thread(target=lambda: run("r1", 1, spark.range(0, 2, 1, 2).rdd.map(waits)))
        running.start()
        found = until(lambda: (work := session.work("r1"))["tasks_running"] == 2 and work)
        (tmp_path / "gate").touch()
        running.join()
        assert (found["tasks"], found["tasks_done"]) == (2, 0)
    finally:
        monkeypatch.undo()
        spark.sparkContext.setLocalProperty("spark.jobGroup.id", None)
        session.close()


class StoppableSession(FakeSession):
    """A session of an application with a user interface."""

    app_id = None

    def __init__(self, app):
        super().__init__(app)
        self.app_id = app

    def _find_status(self, ui_url):
        return SparkRest(f"http://127.0.0.1/{self.app_id}", self.app_id)


def test_the_interface_of_a_stopped_application_gives_way_to_that_of_the_next(hub):
    first, second = StoppableSession("app-1"), StoppableSession("app-2")
    hub.sessions["1"] = first
    before = hub.status()
    assert hub.status() is before and before.base.endswith("/app-1")

    first.up = False  # stopped, and its watch was not closed
    assert hub.status() is None
    hub.sessions["2"] = second
    assert hub.status().base.endswith("/app-2")


def test_a_question_that_fails_does_not_mean_that_there_is_nothing_to_ask(hub, caplog):
    answers = iter([ConnectionError("gone"), None])

    class Failing(StoppableSession):
        def _find_status(self, ui_url):
            if (problem := next(answers)) is not None:
                raise problem
            return super()._find_status(ui_url)

    hub.sessions["1"] = Failing("app-1")
    with pytest.raises(ConnectionError):
        hub.status()
    assert hub.status().base.endswith("/app-1")
    assert "set ui_url" not in caplog.text


def test_a_session_without_a_user_interface_is_asked_for_it_only_now_and_then(hub):
    asked = []

    class Headless(StoppableSession):
        def _find_status(self, ui_url):
            asked.append(self.app_id)

    hub.sessions["1"] = first = Headless("app-1")
    assert [hub.status() for _ in range(5)] == [None] * 5 and asked == ["app-1"]
    first.up = False
    hub.sessions["2"] = StoppableSession("app-2")
    assert hub.status().base.endswith("/app-2"), "the next session may have one"


def test_importing_is_light():
    heavy = "('pyspark', 'psutil', 'orjson', 'http.server')"
    assert python("-c", f"import ledgerops, sys; print([m for m in {heavy} if m in sys.modules])").stdout == "[]\n"
