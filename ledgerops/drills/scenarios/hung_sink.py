"""F13, hung query: from the onset the sink blocks for ever. Spark reports nothing more, and every gauge stays good."""

from ledgerops.drills.harness.drill import LATE, Drill, Fault, Truth
from ledgerops.drills.harness.effects import nothing_done_for
from ledgerops.drills.harness.injector import Surgeon
from ledgerops.drills.harness.target_app import Patient

PLAN = """
seed: 131
start: now
phases: [{shape: constant, rate: 100}]
"""
SILENCE = 10.0  # seconds without a result, where one comes each two: whoever reads them notices


def start(patient: Patient) -> None:
    patient.job("dedup_transactions", {"transactions": patient.rows(PLAN)})


def inject(surgeon: Surgeon) -> None:
    surgeon.chaos.set(block=True)


def repair(surgeon: Surgeon) -> None:
    surgeon.chaos.set(block=None)


DRILL = Drill(
    name="hung-sink",
    id="F13",
    kind="fault",
    summary="the sink blocks for ever",
    start=start,
    inject=inject,
    repair=repair,
    effect=nothing_done_for(SILENCE),
    fault_seconds=60.0,
    recovery_seconds=30.0,
    truth=Truth(
        faults=(Fault(rules=("query-stuck",), component=("query={main}",), remedy="thread dump|restart"),),
        may=LATE,
    ),
)
