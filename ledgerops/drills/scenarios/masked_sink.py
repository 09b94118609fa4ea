"""X6, masked fault: the sink gets slow just when the load falls to a tenth, so that no backlog tells of it."""

from ledgerops.drills.harness.drill import LATE, Drill, Fault, Truth
from ledgerops.drills.harness.effects import batches_outlast
from ledgerops.drills.harness.injector import Surgeon
from ledgerops.drills.harness.target_app import Patient

PLAN = """
seed: 61
start: now
phases:
  - {shape: constant, rate: 300, duration: 45s}
  - {shape: constant, rate: 30}
"""


def start(patient: Patient) -> None:
    patient.query(patient.rows(PLAN))


def inject(surgeon: Surgeon) -> None:
    surgeon.chaos.set(sleep=4.0)


def repair(surgeon: Surgeon) -> None:
    surgeon.chaos.set(sleep=None)


DRILL = Drill(
    name="masked-sink",
    id="X6",
    kind="combined",
    summary="each write takes 4 s while the load falls to a tenth",
    start=start,
    inject=inject,
    repair=repair,
    effect=batches_outlast(2.0),
    truth=Truth(
        faults=(Fault(rules=("slow-sink",), component=("sink",), remedy="write"),),
        may=LATE,
    ),
)
