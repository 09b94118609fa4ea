"""X1, slow sink and whale key at once: both must be named, ranked by what they cost."""

from ledgerops.drills.harness import slow_udf
from ledgerops.drills.harness.drill import LATE, Drill, Fault, Truth
from ledgerops.drills.harness.effects import batches_outlast
from ledgerops.drills.harness.injector import Surgeon
from ledgerops.drills.harness.target_app import Patient

PLAN = """
seed: 11
start: now
phases: [{shape: constant, rate: 120}]
keys: {customers: 400, accounts: 440}
changes: [{from: 45s, to: 90s, keys: {distribution: whale, share: 0.6}}]
"""


def start(patient: Patient) -> None:
    rows = patient.rows(PLAN).repartition(slow_udf.TASKS, "customer_id")
    patient.query(slow_udf.waiting(rows, 4))


def inject(surgeon: Surgeon) -> None:
    surgeon.chaos.set(sleep=4.0)


def repair(surgeon: Surgeon) -> None:
    surgeon.chaos.set(sleep=None)


DRILL = Drill(
    name="sink-and-whale",
    id="X1",
    kind="combined",
    summary="each write takes 4 s, and 60 % of the rows belong to one customer",
    start=start,
    inject=inject,
    repair=repair,
    effect=batches_outlast(2.0),
    recovery_seconds=50.0,
    conf=slow_udf.CONF,
    master=slow_udf.MASTER,
    truth=Truth(
        faults=(
            Fault(rules=("slow-sink",), component=("sink",), remedy="write"),
            Fault(rules=("key-skew",), component=("stage=customer_id", "key=customer_id"), remedy="salt"),
        ),
        may=LATE,
    ),
)
