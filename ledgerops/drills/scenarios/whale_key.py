"""F05, hot key: from the onset, 60 % of the rows belong to one customer and are processed by one task.

State is kept by customer, and each row waits 10 ms. With even keys each of eight tasks takes 0.4 s. The task with the
hot key takes four times as long, and longer with each batch.
"""

from ledgerops.drills.harness import slow_udf
from ledgerops.drills.harness.drill import LATE_SYMPTOMS, Drill, cause
from ledgerops.drills.harness.effects import batches_outlast

PLAN = """
seed: 51
start: now
phases: [{shape: constant, rate: 160}]
keys: {customers: 60, accounts: 66}
changes: [{from: 45s, to: 75s, keys: {distribution: whale, share: 0.6}}]
"""
DRILL = Drill(
    name="whale-key",
    id="F05",
    summary="60 % of the rows belong to one customer and are processed by one task",
    start=lambda app: app.query(slow_udf.scored(app, app.rows(PLAN), 10), mode="update"),
    effect=batches_outlast(2.0),
    fault_seconds=30.0,
    recovery_seconds=50.0,
    conf=slow_udf.CONF,
    master=slow_udf.MASTER,
    truth=cause("key-skew", component=("stage=customer_id", "key=customer_id"), remedy="salt", may=LATE_SYMPTOMS),
)
