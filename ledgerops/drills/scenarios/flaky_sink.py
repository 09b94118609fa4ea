"""F04, flaky sink: from the onset every fourth write stalls for 3 s, the others are as quick as ever."""

from ledgerops.drills.harness.drill import LATE, Drill, Fault, Truth
from ledgerops.drills.harness.effects import batches_outlast
from ledgerops.drills.harness.injector import Surgeon
from ledgerops.drills.harness.target_app import Patient

PLAN = """
seed: 41
start: now
phases: [{shape: constant, rate: 100}]
"""


def start(patient: Patient) -> None:
    patient.query(patient.rows(PLAN), trigger=1.0)


def inject(surgeon: Surgeon) -> None:
    surgeon.chaos.set(stall=3.0, every=4)


def repair(surgeon: Surgeon) -> None:
    surgeon.chaos.set(stall=None, every=None)


DRILL = Drill(
    name="flaky-sink",
    id="F04",
    kind="fault",
    summary="every fourth write stalls for 3 s",
    start=start,
    inject=inject,
    repair=repair,
    effect=batches_outlast(2.0),
    fault_seconds=60.0,
    recovery_seconds=50.0,
    truth=Truth(
        faults=(Fault(rules=("intermittent-sink",), component=("sink",), remedy="slow log|timeout"),),
        may=LATE,
    ),
)
