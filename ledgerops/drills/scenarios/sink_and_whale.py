"""X1, slow sink and hot key together: both must be named, ranked by their cost."""

from ledgerops.drills.harness import slow_udf
from ledgerops.drills.harness.drill import LATE_SYMPTOMS, Drill, Fault, Truth
from ledgerops.drills.harness.effects import batches_outlast
from ledgerops.drills.harness.target_app import TargetApp

PLAN = """
seed: 11
start: now
phases: [{shape: constant, rate: 120}]
keys: {customers: 400, accounts: 440}
changes: [{from: 45s, to: 90s, keys: {distribution: whale, share: 0.6}}]
"""


def start(app: TargetApp) -> None:
    rows = app.rows(PLAN).repartition(slow_udf.TASKS, "customer_id")
    app.query(slow_udf.waiting(rows, 4))


DRILL = Drill(
    name="sink-and-whale",
    id="X1",
    kind="combined",
    summary="each write takes 4 s, and 60 % of the rows belong to one customer",
    start=start,
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
