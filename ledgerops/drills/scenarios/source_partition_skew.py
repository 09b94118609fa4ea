"""F06, source partition skew: from the onset, 80 % of the rows arrive in one of eight source partitions.

Each partition is a task, and each row waits 8 ms in it. The keys are as even as before.
"""

from ledgerops.drills.harness import slow_udf
from ledgerops.drills.harness.drill import LATE_SYMPTOMS, Drill, cause
from ledgerops.drills.harness.effects import batches_outlast

PLAN = """
seed: 61
start: now
phases: [{shape: constant, rate: 160}]
partitions: {count: 8}
changes: [{from: 45s, to: 75s, partitions: {pinned: {partition: 2, share: 0.8}}}]
"""
DRILL = Drill(
    name="source-partition-skew",
    id="F06",
    summary="80 % of the rows arrive in one of eight source partitions",
    start=lambda app: app.query(slow_udf.waiting(slow_udf.by_partition(app, PLAN), 8)),
    effect=batches_outlast(2.0),
    fault_seconds=30.0,
    recovery_seconds=70.0,
    conf=slow_udf.CONF,
    master=slow_udf.MASTER,
    truth=cause("source-partition-skew", component=("partition=-2$|-2 ",), remedy="producer", may=LATE_SYMPTOMS),
)
