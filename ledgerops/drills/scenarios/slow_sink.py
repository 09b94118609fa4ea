"""F03, slow sink: from the onset each write takes 3.5 s, where a batch starts every 2 s."""

from ledgerops.drills.harness.drill import LATE, Drill, Fault, Truth
from ledgerops.drills.harness.effects import batches_outlast
from ledgerops.drills.harness.injector import Surgeon
from ledgerops.drills.harness.target_app import Patient

PLAN = """
seed: 11
start: now
phases: [{shape: constant, rate: 200}]
"""


def start(patient: Patient) -> None:
    patient.job("dedup_transactions", {"transactions": patient.rows(PLAN)})


def inject(surgeon: Surgeon) -> None:
    surgeon.chaos.set(sleep=3.5)


def repair(surgeon: Surgeon) -> None:
    surgeon.chaos.set(sleep=None)


DRILL = Drill(
    name="slow-sink",
    id="F03",
    kind="fault",
    summary="each write takes 3.5 s at a trigger of 2 s",
    start=start,
    inject=inject,
    repair=repair,
    effect=batches_outlast(2.0),
    truth=Truth(
        faults=(Fault(rules=("slow-sink",), component=("sink",), remedy="write"),),
        may=LATE,
    ),
)
