"""F07, rotating hot key: from the onset, 60 % of the rows belong to one customer, a different one every 10 s.

The rows are shuffled by customer, and each waits 10 ms. The finding must stay the same when the key changes.
"""

from ledgerops.drills.harness import slow_udf
from ledgerops.drills.harness.drill import LATE_SYMPTOMS, Drill, cause
from ledgerops.drills.harness.effects import batches_outlast
from ledgerops.drills.harness.target_app import TargetApp

PLAN = """
seed: 71
start: now
phases: [{shape: constant, rate: 160}]
keys: {customers: 400, accounts: 440}
changes: [{from: 45s, to: 75s, keys: {distribution: whale, share: 0.6, rotate: 10s}}]
"""


def start(app: TargetApp) -> None:
    rows = app.rows(PLAN).repartition(slow_udf.TASKS, "customer_id")
    app.query(slow_udf.waiting(rows, 10))


DRILL = Drill(
    name="rotating-hot-key",
    id="F07",
    summary="60 % of the rows belong to one customer, a different one every 10 s",
    start=start,
    effect=batches_outlast(2.0),
    fault_seconds=30.0,
    recovery_seconds=50.0,
    conf=slow_udf.CONF,
    master=slow_udf.MASTER,
    truth=cause("key-skew", component=("stage=customer_id", "key=customer_id"), remedy="salt", may=LATE_SYMPTOMS),
)
