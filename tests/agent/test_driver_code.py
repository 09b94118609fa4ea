"""At which line the function of foreachBatch is, by samples of the driver's threads."""

import sys
import threading
import time
from functools import partial

import pytest

import ledgerops
from ledgerops.agent.driver_code import (
    IDLE_SECONDS,
    REPORT_SECONDS,
    SAMPLE_SECONDS,
    DriverCodeCollector,
    called,
)
from ledgerops.model.observations import decode
from ledgerops.model.records import Observation, Plan
from tests.agent.fakes import FakeSession, queue, roster_of, run_of, taken
from tests.build import T0
from tests.programs import until
from tests.tables import cases


class ForeachBatchFunction:
    """Named as the class of PySpark through which Spark calls the function."""

    def __init__(self, function):
        self.function = function

    def call(self, jdf, batch_id):
        self.function(jdf)


class InSession:
    """What the JVM has of a session: rows and executions that belong to it."""

    def __init__(self, name):
        self.sessionUUID = lambda: name
        self.asked = 0

    def sparkSession(self):
        self.asked += 1
        return self


class Handle:
    """PySpark's handle on a run whose batches run in a session; in none before the first batch."""

    def __init__(self, run_id, session):
        self.runId, self._jsq = run_id, self
        self.streamingQuery, self.lastExecution = lambda: self, lambda: session


def waits(line):
    """Waits for an event in a function of this file; the wait itself is Python's code."""
    line.wait(30)


def waits_for_a_lock(line):
    line.wait(30)


@pytest.fixture
def threads():
    """Two threads that Spark would have called with rows of the sessions `a` and `b`, in `waits` and in
    `waits_for_a_lock`, and one that it would not, in `waits`."""
    done = threading.Event()
    threads = [threading.Thread(target=waits, args=(done,))]
    for name, function in (("b", waits_for_a_lock), ("a", waits)):
        called_by_spark = ForeachBatchFunction(lambda rows, function=function: function(done)).call
        threads.insert(0, threading.Thread(target=called_by_spark, args=(InSession(name), 3)))
    for thread in threads:
        thread.start()
    until(lambda: all(called(sys._current_frames()[thread.ident]) for thread in threads[:2]), 10)
    yield threads
    done.set()
    for thread in threads:
        thread.join()


def collected(sinks, classic=True, sessions="abcdef"):
    """What is queued of runs with these sinks in somewhat more than the time between two reports. Each runs its batches
    in one of these sessions; `-` stands for none."""
    session, box = FakeSession(), queue()
    session.classic = classic
    runs = []
    for number, (sink, name) in enumerate(zip(sinks, sessions, strict=False), 1):
        handle = Handle(f"run-{number}", InSession(name) if name != "-" else None)
        runs.append(run_of(session, handle.runId, plan=Plan(handle.runId, sink=sink), handle=handle))
    now = 0.0
    collector = DriverCodeCollector(box, roster_of(*runs), clock=lambda: now)
    while now <= REPORT_SECONDS:
        collector.collect()
        now += 1.0
    return [decode(Observation(T0, kind, "q", data)) for kind, data in taken(box)]


def test_the_line_of_the_function_is_told_and_not_that_of_the_library_that_it_waits_in(threads):
    of_spark, _, other = [called(sys._current_frames()[thread.ident]) for thread in threads]
    assert of_spark is not None and other is None, "a thread that Spark did not call has no line"
    [code] = collected(["ForeachBatchSink"])
    assert code.function in ("waits", "waits_for_a_lock") and code.file == __file__
    assert 1 <= code.within <= code.samples
    assert code.place == f"test_driver_code.py:{code.line} in {code.function}"


PSYCOPG = "/usr/lib/python3/dist-packages/psycopg/connection.py"


@cases(
    "files, calls",
    ("a package", [PSYCOPG, "/usr/lib/python3.11/selectors.py"], "psycopg"),
    ("Python's own", ["/usr/lib/python3.11/socket.py"], ""),
    ("Spark's", ["/venv/site-packages/pyspark/sql/readwriter.py"], ""),
)
def test_the_package_that_the_line_calls_is_told(files, calls):
    def deepest(places, names):
        """The innermost frame of a function that calls these files, each the next one."""
        for place in reversed(places):
            exec(compile("def go(then, at): return then(at)", place, "exec"), names)
            names["then"] = partial(names["go"], names["then"])
        return names["then"](None)

    def function(rows):
        return deepest(files, {"then": lambda _: called(sys._getframe(1))})

    found = []
    ForeachBatchFunction(lambda rows: found.append(function(rows))).call("rows", 1)
    assert found[0].line[3] == calls


@pytest.mark.parametrize(("sink", "seconds"), [("ForeachBatchSink", SAMPLE_SECONDS), ("memory", IDLE_SECONDS)])
def test_samples_are_frequent_only_while_a_query_has_such_a_function(sink, seconds):
    session = FakeSession()
    session.classic = True
    run = run_of(session, "run-1", plan=Plan("run-1", sink=sink), handle=Handle("run-1", None))
    assert DriverCodeCollector(queue(), roster_of(run)).collect() == seconds


def test_of_several_queries_each_is_told_the_line_of_its_own_function(threads):
    codes = collected(["ForeachBatchSink"] * 2, sessions="ba")
    assert {code.run_id: code.function for code in codes} == {"run-1": "waits_for_a_lock", "run-2": "waits"}


def test_whose_a_function_is_is_asked_once(threads):
    rows = called(sys._current_frames()[threads[0].ident]).rows
    before = rows.asked
    collected(["ForeachBatchSink"] * 2)
    assert rows.asked == before + 1


@cases(
    "sessions",
    ("of another session", "bc"),
    ("no batch has begun that tells its session", "b-"),
)
def test_a_function_of_no_known_query_is_nobodys(threads, sessions):
    codes = collected(["ForeachBatchSink"] * 2, sessions=sessions)
    assert [(code.run_id, code.function) for code in codes] == [("run-1", "waits_for_a_lock")]


@cases(
    "sinks, classic",
    ("another sink", ["Parquet"], True),
    ("the plan is not known", [None], True),
    ("on Spark Connect the function runs elsewhere", ["ForeachBatchSink"], False),
    ("no query", [], True),
)
def test_nothing_is_told_otherwise(threads, sinks, classic):
    assert collected(sinks, classic) == []


def test_nothing_is_told_while_no_function_runs():
    assert collected(["ForeachBatchSink"]) == []


def test_slow_functions_are_named_with_their_lines(spark, tmp_path):
    def write_batch(rows, number):
        rows.count()
        time.sleep(3.0)

    def write_copy(rows, number):
        rows.count()
        time.sleep(3.0)

    def start(name, function):
        rows = spark.readStream.format("rate").option("rowsPerSecond", 10).load()
        written = rows.writeStream.queryName(name).option("checkpointLocation", str(tmp_path / name))
        return written.foreachBatch(function).trigger(processingTime="1 second").start()

    def named(query, function):
        told = [each for each in watch.diagnose()["queries"] if each["query"] == query]
        return any(f" in {function})" in found["summary"] for each in told for found in each["findings"])

    watch = ledgerops.attach(spark, port=0)
    queries = [start("written", write_batch), start("copied", write_copy)]
    try:
        until(lambda: named("written", "write_batch") and named("copied", "write_copy"), 120, "the lines")
    finally:
        for query in queries:
            query.stop()
        watch.close()


def test_a_record_without_its_line_is_refused():
    data = {"run_id": "r", "samples": 1, "within": 1, "file": "a", "function": "f"}
    with pytest.raises(ValueError, match="no line"):
        decode(Observation(T0, "driver_code", "q", data))
