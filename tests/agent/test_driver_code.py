"""At which line the function of foreachBatch is, by samples of the driver's threads."""

import sys
import threading
import time

import pytest

import ledgerops
from ledgerops.agent.driver_code import REPORT_SECONDS, DriverCodeCollector, own_line
from ledgerops.model.observations import decode
from ledgerops.model.records import DriverCode, Observation, Plan
from tests.agent.fakes import FakeSession, queue, roster_of, run_of, taken
from tests.build import T0
from tests.programs import until


class ForeachBatchFunction:
    """Named as the class of PySpark through which Spark calls the function."""

    def call(self, function):
        function()


def waits(line):
    """Waits for an event in a function of this file; the wait itself is Python's code."""
    line.wait(30)


@pytest.fixture
def called():
    """A thread that Spark would have called, and one that it would not, both in `waits`."""
    done = threading.Event()
    threads = [
        threading.Thread(target=ForeachBatchFunction().call, args=(lambda: waits(done),)),
        threading.Thread(target=waits, args=(done,)),
    ]
    for thread in threads:
        thread.start()
    until(lambda: own_line(sys._current_frames()[threads[0].ident]), 10)
    yield threads
    done.set()
    for thread in threads:
        thread.join()


def collected(sinks, classic=True):
    """What is queued of runs with these sinks in somewhat more than the time between two reports."""
    session, box = FakeSession(), queue()
    session.classic = classic
    runs = [run_of(session, f"run-{n}", plan=Plan(f"run-{n}", sink=sink)) for n, sink in enumerate(sinks, 1)]
    now = 0.0
    collector = DriverCodeCollector(box, roster_of(*runs), clock=lambda: now)
    while now <= REPORT_SECONDS:
        collector.collect()
        now += 1.0
    return [decode(Observation(T0, kind, "q", data)) for kind, data in taken(box)]


def test_the_line_of_the_function_is_told_and_not_that_of_the_library_that_it_waits_in(called):
    [code] = collected(["ForeachBatchSink"])

    assert code.function == "waits" and code.file == __file__
    assert 1 <= code.within <= code.samples
    assert code.place == f"test_driver_code.py:{code.line} in waits"


def test_a_thread_that_spark_did_not_call_has_no_line(called):
    of_spark, other = [own_line(sys._current_frames()[thread.ident]) for thread in called]

    assert of_spark is not None and other is None


@pytest.mark.parametrize(
    ("sinks", "classic"),
    [
        pytest.param(["ForeachBatchSink", "ForeachBatchSink"], True, id="whose of two queries is not known"),
        pytest.param(["Parquet"], True, id="another sink"),
        pytest.param([None], True, id="the plan is not known"),
        pytest.param(["ForeachBatchSink"], False, id="on Spark Connect the function runs elsewhere"),
        pytest.param([], True, id="no query"),
    ],
)
def test_nothing_is_told_otherwise(called, sinks, classic):
    assert collected(sinks, classic) == []


def test_nothing_is_told_while_no_function_runs():
    assert collected(["ForeachBatchSink"]) == []


def test_a_slow_function_is_named_with_its_line(spark, tmp_path):
    def write_batch(rows, number):
        rows.count()
        time.sleep(3.0)

    watch = ledgerops.attach(spark, port=0)
    stream = spark.readStream.format("rate").option("rowsPerSecond", 10).load()
    query = (
        stream.writeStream.queryName("written")
        .foreachBatch(write_batch)
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(processingTime="1 second")
        .start()
    )

    def summaries():
        return [each["summary"] for q in watch.diagnose()["queries"] for each in q["findings"]]

    try:
        until(lambda: any(text for text in summaries() if " in write_batch)" in text), 120, "the line")
        assert any("test_driver_code.py:" in text for text in summaries())
    finally:
        query.stop()
        watch.close()


def test_a_record_without_its_line_is_refused():
    with pytest.raises(ValueError, match="no line"):
        decode(
            Observation(
                T0, "driver_code", "q", {"run_id": "r", "samples": 1, "within": 1, "file": "a", "function": "f"}
            )
        )


def test_a_place_is_short():
    assert DriverCode(T0, "r", 9, 9, "/srv/jobs/etl/app.py", 42, "enrich").place == "app.py:42 in enrich"
