"""Work that is shared unevenly, over keys, source partitions, tasks or executors."""

from __future__ import annotations

import signal
import threading
from dataclasses import replace

import psutil

from ledgerops.drills.harness import slow_udf
from ledgerops.drills.harness.drill import LATE_SYMPTOMS, Drill, Fault, Truth, cause
from ledgerops.drills.harness.effects import batches_outlast
from ledgerops.drills.harness.injector import Injector
from ledgerops.drills.harness.target_app import TargetApp
from ledgerops.ledger.sources.workers import make_importable

EXECUTOR = "CoarseGrainedExecutorBackend"  # in the command line of an executor

# F05, hot key: from the onset, 60 % of the rows belong to one customer and are processed by one task.
#
# State is kept by customer, and each row waits 10 ms. With even keys each of eight tasks takes 0.4 s. The task with the
# hot key takes four times as long, and longer with each batch.
WHALE_KEY_PLAN = """
seed: 51
start: now
phases: [{shape: constant, rate: 160}]
keys: {customers: 60, accounts: 66}
changes: [{from: 45s, to: 75s, keys: {distribution: whale, share: 0.6}}]
"""
WHALE_KEY = Drill(
    name="whale-key",
    id="F05",
    summary="60 % of the rows belong to one customer and are processed by one task",
    start=lambda app: app.query(slow_udf.scored(app, app.rows(WHALE_KEY_PLAN), 10), mode="update"),
    effect=batches_outlast(2.0),
    fault_seconds=30.0,
    recovery_seconds=50.0,
    conf=slow_udf.CONF,
    master=slow_udf.MASTER,
    truth=cause("key-skew", component=("stage=customer_id", "key=customer_id"), remedy="salt", may=LATE_SYMPTOMS),
)


# F07, rotating hot key: from the onset, 60 % of the rows belong to one customer, a different one every 10 s.
#
# The rows are shuffled by customer, and each waits 10 ms. The finding must stay the same when the key changes.
ROTATING_HOT_KEY_PLAN = """
seed: 71
start: now
phases: [{shape: constant, rate: 160}]
keys: {customers: 400, accounts: 440}
changes: [{from: 45s, to: 75s, keys: {distribution: whale, share: 0.6, rotate: 10s}}]
"""


def start_rotating_hot_key(app: TargetApp) -> None:
    rows = app.rows(ROTATING_HOT_KEY_PLAN).repartition(slow_udf.WAITING_TASKS, "customer_id")
    app.query(slow_udf.waiting(rows, 10))


ROTATING_HOT_KEY = replace(
    WHALE_KEY,
    name="rotating-hot-key",
    id="F07",
    summary="60 % of the rows belong to one customer, a different one every 10 s",
    start=start_rotating_hot_key,
)


# F06, source partition skew: from the onset, 80 % of the rows arrive in one of eight source partitions.
#
# Each partition is a task, and each row waits 8 ms in it. The keys are as even as before.
SOURCE_PARTITION_SKEW_PLAN = """
seed: 61
start: now
phases: [{shape: constant, rate: 160}]
partitions: {count: 8}
changes: [{from: 45s, to: 75s, partitions: {pinned: {partition: 2, share: 0.8}}}]
"""
SOURCE_PARTITION_SKEW = Drill(
    name="source-partition-skew",
    id="F06",
    summary="80 % of the rows arrive in one of eight source partitions",
    start=lambda app: app.query(slow_udf.waiting(slow_udf.by_partition(app, SOURCE_PARTITION_SKEW_PLAN), 8)),
    effect=batches_outlast(2.0),
    fault_seconds=30.0,
    recovery_seconds=70.0,
    conf=slow_udf.CONF,
    master=slow_udf.MASTER,
    truth=cause("source-partition-skew", component=("partition=-2$|-2 ",), remedy="producer", may=LATE_SYMPTOMS),
)


# P02, straggler: from the onset, one of eight tasks takes 4 s longer than the others for as many rows.
STRAGGLER_PLAN = "{seed: 211, start: now, phases: [{shape: constant, rate: 200}]}"


def start_straggler(app: TargetApp) -> None:
    make_importable(app.spark)
    rows = app.rows(STRAGGLER_PLAN).repartition(slow_udf.WAITING_TASKS)
    app.query(rows.mapInArrow(slow_udf.one_task(app.folder / "control.json", 1), rows.schema))


STRAGGLER = Drill(
    name="straggler",
    id="P02",
    summary="one of eight tasks takes 4 s longer for as many rows",
    start=start_straggler,
    control={"straggle": 4.0},
    effect=batches_outlast(2.0),
    master=slow_udf.MASTER,
    truth=cause("straggler", component=("stage=task 1",), remedy="partition|machine", may=LATE_SYMPTOMS),
)


# P03, slow executor: one of two executors is repeatedly stopped and resumed, so that it runs a fifth of the time.
SLOW_EXECUTOR_PLAN = "{seed: 221, start: now, phases: [{shape: constant, rate: 60}]}"
STOPPED_SECONDS, RUNNING_SECONDS = 1.2, 0.3


def start_slow_executor(app: TargetApp) -> None:
    rows = app.rows(SLOW_EXECUTOR_PLAN).repartition(4)
    app.query(slow_udf.waiting(rows, 10))


def inject_slow_executor(injector: Injector) -> None:
    process = max(injector.children(EXECUTOR), key=lambda each: each.pid)
    over = threading.Event()
    injector.held["over"] = over

    def slow() -> None:
        while not over.is_set() and process.is_running():
            try:
                process.send_signal(signal.SIGSTOP)
                over.wait(STOPPED_SECONDS)
                process.send_signal(signal.SIGCONT)
            except psutil.Error:
                return
            over.wait(RUNNING_SECONDS)

    thread = threading.Thread(target=slow, name="slow-executor")
    thread.start()
    injector.held["thread"] = thread
    injector.closing.append(lambda: repair_slow_executor(injector))


def repair_slow_executor(injector: Injector) -> None:
    injector.held["over"].set()
    injector.held["thread"].join()


SLOW_EXECUTOR = Drill(
    name="slow-executor",
    id="P03",
    summary="one of two executors is stopped for most of the time",
    start=start_slow_executor,
    inject=inject_slow_executor,
    repair=repair_slow_executor,
    effect=batches_outlast(2.0),
    heavy=True,
    master="local-cluster[2,1,1024]",
    truth=cause("straggler", component=("executor",), remedy="machine", may=LATE_SYMPTOMS),
)


# P04, scheduler skew: one of two executors is killed and replaced, but all state is now on the other.
#
# Tasks prefer the executor that holds their state and wait for its cores (`spark.locality.wait`) longer than a batch
# takes. Each row waits 8 ms, so both executors are needed.
SCHEDULER_SKEW_PLAN = "{seed: 231, start: now, phases: [{shape: constant, rate: 110}]}"
STATE_PARTITIONS = 6


def start_scheduler_skew(app: TargetApp) -> None:
    rows = app.rows(SCHEDULER_SKEW_PLAN).withWatermark("event_time", "5 seconds")
    app.query(slow_udf.waiting(rows.dropDuplicatesWithinWatermark(["transaction_id"]), 8))


SCHEDULER_SKEW = Drill(
    name="scheduler-skew",
    id="P04",
    summary="after the loss of an executor all state, and so all work, is on the other",
    start=start_scheduler_skew,
    inject=lambda injector: max(injector.children(EXECUTOR), key=lambda each: each.pid).kill(),
    effect=batches_outlast(2.0),
    onset_seconds=60.0,  # time for two executors to start and to process what arrived meanwhile
    fault_seconds=60.0,
    recovery_seconds=1.0,
    recovers=False,
    deadline_seconds=45.0,  # its batches take 6 to 9 s, and some must show it
    heavy=True,
    conf=(("spark.sql.shuffle.partitions", str(STATE_PARTITIONS)), ("spark.locality.wait", "8s")),
    master="local-cluster[2,1,1024]",
    truth=cause("scheduler-skew", component=("executor",), remedy="restart|again|locality", may=LATE_SYMPTOMS),
)


# X1, slow sink and hot key together: both must be named, ranked by their cost.
SINK_AND_WHALE_PLAN = """
seed: 11
start: now
phases: [{shape: constant, rate: 120}]
keys: {customers: 400, accounts: 440}
changes: [{from: 45s, to: 90s, keys: {distribution: whale, share: 0.6}}]
"""


def start_sink_and_whale(app: TargetApp) -> None:
    rows = app.rows(SINK_AND_WHALE_PLAN).repartition(slow_udf.WAITING_TASKS, "customer_id")
    app.query(slow_udf.waiting(rows, 4))


SINK_AND_WHALE = Drill(
    name="sink-and-whale",
    id="X1",
    kind="combined",
    summary="each write takes 4 s, and 60 % of the rows belong to one customer",
    start=start_sink_and_whale,
    control={"sleep": 4.0},
    effect=batches_outlast(2.0),
    recovery_seconds=50.0,
    conf=slow_udf.CONF,
    master=slow_udf.MASTER,
    truth=Truth(
        faults=(
            Fault(rules=("slow-sink",), component=("sink",), remedy="write"),
            Fault(rules=("key-skew",), component=("stage=customer_id", "key=customer_id"), remedy="salt"),
        ),
        may=LATE_SYMPTOMS,
    ),
)


DRILLS = (WHALE_KEY, ROTATING_HOT_KEY, SOURCE_PARTITION_SKEW, STRAGGLER, SLOW_EXECUTOR, SCHEDULER_SKEW, SINK_AND_WHALE)
