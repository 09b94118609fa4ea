"""Thread dumps of batches that do not end: when they are taken, and what is kept of them."""

from __future__ import annotations

import orjson
import pytest

from ledgerops.agent.queue import EventQueue
from ledgerops.agent.stacks import StackCollector, stacks_of
from ledgerops.metrics.self_watch import SelfStats
from ledgerops.model.records import Stack
from ledgerops.runtime.runs import Run

T0 = 1_790_000_000.0
POLL = [
    "java.base@17.0.15/sun.nio.ch.EPoll.wait(Native Method)\n",
    "java.base@17.0.15/sun.nio.ch.SelectorImpl.select(SelectorImpl.java:141)\n\t-  locked java.util.Collections@7\n",
    "app//org.apache.kafka.clients.consumer.KafkaConsumer.poll(KafkaConsumer.java:874)\n",
    "app//org.apache.spark.sql.kafka010.Reader$$Lambda$2937/0x00007ff6f0ece000.apply(Unknown Source)\n",
    "app//org.apache.spark.scheduler.Task.run(Task.scala:147)\n",
]
FRAMES = (
    "sun.nio.ch.EPoll.wait",
    "org.apache.kafka.clients.consumer.KafkaConsumer.poll",
    "org.apache.spark.scheduler.Task.run",
)


def task(number, stage, lines=POLL):
    name = f"Executor task launch worker for task {number}.0 in stage {stage}.0 (TID {number})"
    return {"threadName": name, "stackTrace": {"elems": lines}}


def query(run_id, lines):
    name = f"stream execution thread for q [id = 1, runId = {run_id}]"
    return {"threadName": name, "stackTrace": {"elems": lines}}


IDLE = {"threadName": "Executor task idle worker#8", "stackTrace": {"elems": POLL}}
AWAITS = ["app//org.apache.spark.util.ThreadUtils$.awaitReady(ThreadUtils.scala:417)\n"]


def test_the_stacks_of_a_run_are_those_of_its_thread_and_of_the_tasks_of_its_stages():
    threads = [task(1, 8), task(2, 8), task(3, 9), IDLE, query("run-1", AWAITS), query("run-2", POLL)]

    assert stacks_of("run-1", threads, stages={8}, alone=False) == (
        Stack(True, 2, FRAMES),
        Stack(False, 1, ("org.apache.spark.util.ThreadUtils$.awaitReady",)),
    )


@pytest.mark.parametrize(
    ("alone", "tasks"), [pytest.param(True, 1, id="one query"), pytest.param(False, 0, id="several queries")]
)
def test_without_known_stages_tasks_are_those_of_the_only_query(alone, tasks):
    assert sum(each.count for each in stacks_of("run-1", [task(1, 8)], stages=None, alone=alone)) == tasks


def test_what_is_no_thread_dump_has_no_stacks():
    threads = [{}, {"threadName": None}, task(1, 8, ["?"]), {**task(2, 8), "stackTrace": None}]

    assert stacks_of("run-1", threads, stages={8}, alone=True) == ()


class Spark:
    """An application with two executors, each with a task in stage 8."""

    asked: list[str]

    def __init__(self):
        self.asked = []

    def executors(self):
        counts = {"driver": 0, "1": 1, "2": 0, "3": 4, "4": 2}
        return [{"id": name, "activeTasks": count} for name, count in counts.items()]

    def threads(self, executor):
        self.asked.append(executor)
        return [query("run-1", AWAITS)] if executor == "driver" else [task(1, 8)]


class Session:
    def running_stages(self, run_id):
        return frozenset({8})


@pytest.fixture
def watched():
    """A collector whose run reports every 2 s, and its clock, application and queue."""
    run = Run("q", "id-1", "run-1", Session(), T0)
    now, spark, queue = [T0], Spark(), EventQueue(SelfStats())
    runs = type("Runs", (), {"runs": lambda self: [run]})()
    collector = StackCollector(queue, runs, lambda: spark, clock=lambda: now[0])

    def at(seconds, seen=False):
        now[0] = T0 + seconds
        if seen:
            run.last_seen = now[0]
        collector.collect()
        return [orjson.loads(event.data) for event in queue.take(0.0)]

    return at, spark


def test_nothing_is_asked_while_batches_come_as_usual(watched):
    at, spark = watched

    assert [at(2.0 * number, seen=True) for number in range(5)] == [[]] * 5
    assert at(12.9) == []
    assert spark.asked == []


def test_of_a_batch_that_does_not_end_driver_and_busiest_executors_are_dumped(watched):
    at, spark = watched
    [found] = at(5.1)

    assert spark.asked == ["driver", "3", "4"]
    assert (found["run_id"], found["at"]) == ("run-1", T0 + 5.1)
    assert [(each["task"], each["count"]) for each in found["stacks"]] == [(True, 2), (False, 1)]


def test_a_run_whose_batches_take_minutes_is_left_alone_for_three_of_them(watched):
    at, _ = watched
    for number in range(4):
        at(60.0 * number, seen=True)

    assert at(180.0 + 179.0) == []
    assert len(at(180.0 + 181.0)) == 1
