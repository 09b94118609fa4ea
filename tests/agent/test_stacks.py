"""Looks at the threads of batches that do not end: when they are taken, and what is kept of them."""

import orjson
import pytest

from ledgerops.agent.queue import EventQueue
from ledgerops.agent.stacks import StackCollector, stacks_of
from ledgerops.metrics.self_watch import SelfStats
from ledgerops.model.records import Plan, Stack
from ledgerops.runtime.runs import Run
from tests.tables import cases

T0 = 1_790_000_000.0
POLL = [
    "sun.nio.ch.EPoll.wait",
    "sun.nio.ch.SelectorImpl.select",
    "org.apache.kafka.clients.consumer.KafkaConsumer.poll",
    "org.apache.spark.sql.kafka010.Reader$$Lambda$2937/0x00007ff6f0ece000.apply",
    "org.apache.spark.scheduler.Task.run",
]
TELLING = (POLL[0], POLL[2], POLL[4])
AWAITS = ["org.apache.spark.util.ThreadUtils$.awaitReady"]


def task(number, stage):
    return f"Executor task launch worker for task {number}.0 in stage {stage}.0 (TID {number})", True, POLL


def query(run_id, frames=AWAITS):
    return f"stream execution thread for q [id = 1, runId = {run_id}]", False, frames


def test_the_stacks_of_a_run_are_those_of_its_thread_and_of_the_tasks_of_its_stages():
    threads = [
        task(1, 8),
        task(2, 8),
        task(3, 9),
        ("Executor task idle worker#8", True, POLL),
        query("run-1"),
        query("run-2"),
    ]

    assert stacks_of("run-1", threads, {8}) == (Stack(True, 2, TELLING, runs=True), Stack(False, 1, tuple(AWAITS)))
    assert stacks_of("run-1", [query("run-1", [])], {8}) == ()


class Session:
    classic = alive = True
    key, broken = "s", False

    def __init__(self):
        self.asked = 0

    def running_stages(self, run_id):
        if run_id == self.broken:
            raise OSError("gone")
        return frozenset({8})

    def threads(self, wanted):
        self.asked += 1
        return [each for each in (task(1, 8), query("run-1"), ("main", True, [])) if wanted(each[0])]


@pytest.fixture
def watched():
    """A collector whose two runs report every 2 s, and its session and runs."""
    session, now, queue = Session(), [T0], EventQueue(SelfStats())
    runs = [Run(name, f"id-{name}", f"run-{name}", session, T0) for name in "12"]
    of_runs = type("Runs", (), {"runs": lambda self: runs})()
    ahead = [0.0]  # of the clock
    collector = StackCollector(queue, of_runs, clock=lambda: now[0] + ahead[0], steady=lambda: now[0] - T0)

    def at(seconds, seen=False, set_by=0.0):
        now[0], ahead[0] = T0 + seconds, set_by
        for run in runs if seen else ():
            run.last_seen = now[0]
        try:
            collector.collect()
        except OSError:
            pass
        return [orjson.loads(event.data)["run_id"] for event in queue.take(0.0)]

    return at, session, runs


def test_nothing_is_asked_while_batches_come_as_usual(watched):
    at, session, _ = watched

    assert [at(2.0 * number, seen=True) for number in range(5)] == [[]] * 5
    assert at(13.9) == []
    assert session.asked == 0


def test_of_batches_that_do_not_end_all_threads_are_read_at_once(watched):
    at, session, _ = watched
    for number in range(5):
        at(2.0 * number, seen=True)

    assert at(14.1) == ["run-1", "run-2"]
    assert session.asked == 1


def test_a_run_of_which_spark_knows_nothing_hides_no_other(watched):
    at, session, _ = watched
    session.broken = "run-1"

    assert at(31.0) == ["run-2"]


@cases(
    "plan, idle, seconds, looked",
    ("a first batch", None, False, 29.0, False),
    ("a long first batch", None, False, 31.0, True),
    ("a batch of all there is", "available_now", False, 3_000.0, False),
    ("a batch that lasts by design", "real_time", False, 3_000.0, False),
    ("an idle query of which nothing is heard any more", "processing_time", True, 3_000.0, True),
)
def test_batches_that_take_long_by_design_are_left_alone(watched, plan, idle, seconds, looked):
    at, session, runs = watched
    for run in runs:
        run.plan, run.idle = plan and Plan(run.run_id, plan, None), idle
    at(seconds)

    assert bool(session.asked) is looked


def test_a_run_whose_batches_take_minutes_is_left_alone_for_three_of_them(watched):
    at, _, runs = watched
    for number in range(4):
        at(60.0 * number, seen=True)
    for run in runs:
        run.idle = True
    for number in range(18):
        at(190.0 + 10 * number, seen=True)  # idle events are no batches

    assert at(360.0 + 179.0) == []
    assert at(360.0 + 181.0) == ["run-1", "run-2"]


def test_a_clock_that_is_set_makes_no_run_silent(watched):
    at, session, _ = watched
    for number in range(5):
        at(2.0 * number, seen=True)

    assert at(9.0, set_by=3_600.0) == []
    assert session.asked == 0
