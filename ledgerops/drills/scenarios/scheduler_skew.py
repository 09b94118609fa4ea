"""Scheduler skew: one of two executors is killed and replaced, but all state is now on the other.

Tasks prefer the executor that holds their state and wait for its cores (`spark.locality.wait`) longer than a batch
takes. Each row waits 8 ms, so both executors are needed.
"""

from ledgerops.drills.harness import slow_udf
from ledgerops.drills.harness.drill import LATE_SYMPTOMS, Drill, cause
from ledgerops.drills.harness.effects import batches_outlast
from ledgerops.drills.harness.target_app import TargetApp

PLAN = "{seed: 231, start: now, phases: [{shape: constant, rate: 110}]}"
EXECUTOR = "CoarseGrainedExecutorBackend"
PARTITIONS = 6


def start(app: TargetApp) -> None:
    rows = app.rows(PLAN).withWatermark("event_time", "5 seconds")
    app.query(slow_udf.waiting(rows.dropDuplicatesWithinWatermark(["transaction_id"]), 8))


DRILL = Drill(
    name="scheduler-skew",
    id="P04",
    summary="after the loss of an executor all state, and so all work, is on the other",
    start=start,
    inject=lambda injector: max(injector.children(EXECUTOR), key=lambda each: each.pid).kill(),
    effect=batches_outlast(2.0),
    onset=60.0,  # time for two executors to start and to process what arrived meanwhile
    fault_seconds=60.0,
    recovery_seconds=1.0,
    recovers=False,
    deadline=45.0,  # its batches take 6 to 9 s, and some must show it
    heavy=True,
    conf=(("spark.sql.shuffle.partitions", str(PARTITIONS)), ("spark.locality.wait", "8s")),
    master="local-cluster[2,1,1024]",
    truth=cause("scheduler-skew", component=("executor",), remedy="restart|again|locality", may=LATE_SYMPTOMS),
)
