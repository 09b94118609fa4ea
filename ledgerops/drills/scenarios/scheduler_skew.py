"""Scheduler skew: one of two executors is killed. A new one comes at once, but all state is now on the other, and the
tasks stay with it: they wait for its cores for longer (`spark.locality.wait`) than a batch takes.

Each row waits 8 ms behind the state, so that two executors at a time are needed.
"""

from ledgerops.drills.harness import slow_udf
from ledgerops.drills.harness.drill import LATE, Drill, Fault, Truth
from ledgerops.drills.harness.effects import batches_outlast
from ledgerops.drills.harness.injector import Surgeon
from ledgerops.drills.harness.target_app import Patient

PLAN = """
seed: 231
start: now
phases: [{shape: constant, rate: 110}]
"""
EXECUTOR = "CoarseGrainedExecutorBackend"
PARTITIONS = 6


def start(patient: Patient) -> None:
    rows = patient.rows(PLAN).withWatermark("event_time", "5 seconds")
    patient.query(slow_udf.waiting(rows.dropDuplicatesWithinWatermark(["transaction_id"]), 8))


def inject(surgeon: Surgeon) -> None:
    max(surgeon.children(EXECUTOR), key=lambda each: each.pid).kill()


DRILL = Drill(
    name="scheduler-skew",
    id="P04",
    kind="fault",
    summary="after the loss of an executor all state, and so all work, is on the other",
    start=start,
    inject=inject,
    effect=batches_outlast(2.0),
    onset=60.0,  # two executors take as long to start, and to work off what came meanwhile
    fault_seconds=60.0,
    recovery_seconds=1.0,
    recovers=False,
    deadline=45.0,  # its batches take 6 to 9 s, and some must show it
    heavy=True,
    conf=(("spark.sql.shuffle.partitions", str(PARTITIONS)), ("spark.locality.wait", "8s")),
    master="local-cluster[2,1,1024]",
    truth=Truth(
        faults=(Fault(rules=("scheduler-skew",), component=("executor",), remedy="restart|again|locality"),),
        may=LATE,
    ),
)
