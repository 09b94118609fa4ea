"""Work that is shared unevenly, over keys, source partitions, tasks or executors."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import psutil

from ledgerops.drills.applications.outside import ask, total, waiting
from ledgerops.drills.harness.actions import EXECUTOR, executor_killed
from ledgerops.drills.harness.case import LATE_SYMPTOMS, Fault, scripted, steady
from ledgerops.drills.harness.effects import batches_outlast
from ledgerops.drills.harness.injector import Injector
from ledgerops.drills.harness.target_app import TargetApp

WAITING_TASKS = 8  # that wait at the same time: more than the cores, as waiting needs none
CONF = {"spark.sql.shuffle.partitions": str(WAITING_TASKS)}
MASTER = f"local[{WAITING_TASKS}]"
MANY_KEYS = "keys: {customers: 400, accounts: 440}"
TWO_EXECUTORS = "local-cluster[2,1,1024]"

# F05, hot key. State is kept by customer, and each row waits 10 ms. With even keys each of eight tasks takes 0.4 s. The
# task with the hot key takes four times as long, and longer with each batch.
WHALE_KEY_PLAN = steady(
    51,
    160,
    "keys: {customers: 60, accounts: 66}, changes: [{from: 45s, to: 75s, keys: {distribution: whale, share: 0.6}}]",
)

# F07, rotating hot key. The rows are shuffled by customer, and each waits 10 ms. The finding must stay the same when
# the key changes.
ROTATING_HOT_KEY_PLAN = steady(
    71,
    160,
    f"{MANY_KEYS}, changes: [{{from: 45s, to: 75s, keys: {{distribution: whale, share: 0.6, rotate: 10s}}}}]",
)

# F06, source partition skew. Each partition is a task, and each row waits 8 ms in it. The keys are as even as before.
SOURCE_PARTITION_SKEW_PLAN = steady(
    61,
    160,
    "partitions: {count: 8}, changes: [{from: 45s, to: 75s, partitions: {pinned: {partition: 2, share: 0.8}}}]",
)

# X1, slow sink and hot key together: both must be named, ranked by their cost.
SINK_AND_WHALE_PLAN = steady(
    11, 120, f"{MANY_KEYS}, changes: [{{from: 45s, to: 90s, keys: {{distribution: whale, share: 0.6}}}}]"
)


def start_whale_key(app: TargetApp) -> None:
    customers = app.rows(WHALE_KEY_PLAN).groupBy("customer_id")
    totals = customers.applyInPandasWithState(total, "key STRING, n LONG", "n LONG", "update", "NoTimeout")
    app.query(totals, mode="update")


def waiting_by_customer(app: TargetApp, plan: str, milliseconds: int) -> None:
    """A query whose rows are shuffled by customer, where each waits."""
    rows = app.rows(plan).repartition(WAITING_TASKS, "customer_id")
    app.query(waiting(rows, milliseconds))


def start_straggler(app: TargetApp) -> None:
    rows = app.rows(steady(211, 200)).repartition(WAITING_TASKS)
    app.query(rows.mapInArrow(ask, rows.schema))


# P03, slow executor: one of two executors is repeatedly stopped and resumed, so that it runs a fifth of the time.
STOPPED_SECONDS, RUNNING_SECONDS = 1.2, 0.3


@contextmanager
def slow_executor(injector: Injector) -> Iterator[None]:
    """The newest executor is stopped for most of the time."""
    process = max(injector.children(EXECUTOR), key=lambda child: child.pid)
    over = threading.Event()

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
    try:
        yield
    finally:
        over.set()
        thread.join()


# P04, scheduler skew. Tasks prefer the executor that holds their state and wait for its cores (`spark.locality.wait`)
# longer than a batch takes. Each row waits 8 ms, so both executors are needed.
STATE_PARTITIONS = 6


def start_scheduler_skew(app: TargetApp) -> None:
    rows = app.rows(steady(231, 110)).withWatermark("event_time", "5 seconds")
    app.query(waiting(rows.dropDuplicatesWithinWatermark(["transaction_id"]), 8))


DRILLS = (
    scripted(
        name="whale-key", id="F05", text="60 % of the rows belong to one customer and are processed by one task",
        start=start_whale_key, control={"row": 0.01},
        effect=batches_outlast(2.0), fault_seconds=30.0, seconds=125.0, conf=CONF, master=MASTER,
        expected=("key-skew",), component=("stage=customer_id", "key=customer_id"), remedy="salt", may=LATE_SYMPTOMS,
    ),
    scripted(
        name="rotating-hot-key", id="F07", text="60 % of the rows belong to one customer, a different one every 10 s",
        start=lambda app: waiting_by_customer(app, ROTATING_HOT_KEY_PLAN, 10),
        effect=batches_outlast(2.0), fault_seconds=30.0, seconds=125.0, conf=CONF, master=MASTER,
        expected=("key-skew",), component=("stage=customer_id", "key=customer_id"), remedy="salt", may=LATE_SYMPTOMS,
    ),
    scripted(
        name="source-partition-skew", id="F06", text="80 % of the rows arrive in one of eight source partitions",
        start=lambda app: app.query(waiting(app.partitioned_rows(SOURCE_PARTITION_SKEW_PLAN), 8)),
        effect=batches_outlast(2.0), fault_seconds=30.0, seconds=145.0, conf=CONF, master=MASTER,
        expected=("source-partition-skew",), component=("partition=-2$|-2 ",), remedy="producer", may=LATE_SYMPTOMS,
    ),
    scripted(
        name="straggler", id="P02", text="one of eight tasks takes 4 s longer for as many rows",
        start=start_straggler, fault={"region": 4.0}, effect=batches_outlast(2.0), master=MASTER,
        expected=("straggler",), component=("stage=task 1",), remedy="partition|machine", may=LATE_SYMPTOMS,
    ),
    scripted(
        name="slow-executor", id="P03", text="one of two executors is stopped for most of the time",
        start=lambda app: app.query(waiting(app.rows(steady(221, 60)).repartition(4), 10)),
        breaks=slow_executor, effect=batches_outlast(2.0), heavy=True, master=TWO_EXECUTORS,
        expected=("straggler",), component=("executor",), remedy="machine", may=LATE_SYMPTOMS,
    ),
    scripted(
        name="scheduler-skew", id="P04",
        text="after the loss of an executor all state, and so all work, is on the other",
        start=start_scheduler_skew, breaks=executor_killed, effect=batches_outlast(2.0),
        onset_seconds=60.0,  # time for two executors to start and to process what arrived meanwhile
        fault_seconds=60.0, seconds=121.0, recovers=False, heavy=True, master=TWO_EXECUTORS,
        deadline_seconds=45.0,  # its batches take 6 to 9 s, and some must show it
        conf={"spark.sql.shuffle.partitions": str(STATE_PARTITIONS), "spark.locality.wait": "8s"},
        expected=("scheduler-skew",), component=("executor",), remedy="restart|again|locality", may=LATE_SYMPTOMS,
    ),
    scripted(
        name="sink-and-whale", id="X1", text="each write takes 4 s, and 60 % of the rows belong to one customer",
        start=lambda app: waiting_by_customer(app, SINK_AND_WHALE_PLAN, 4), fault={"sink": 4.0},
        effect=batches_outlast(2.0), seconds=140.0, conf=CONF, master=MASTER,
        expected=("slow-sink",), component=("sink",), remedy="write", may=LATE_SYMPTOMS,
        further=(
            Fault(rules=("key-skew",), component=("stage=customer_id", "key=customer_id"), remedy="salt"),
        ),
    ),
)  # fmt: skip
