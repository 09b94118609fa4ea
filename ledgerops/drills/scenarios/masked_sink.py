"""X6, masked fault: the sink becomes slow just when the load falls to a tenth, so that no backlog grows."""

from ledgerops.drills.harness.drill import LATE_SYMPTOMS, Drill, Fault, Truth
from ledgerops.drills.harness.effects import batches_outlast
from ledgerops.drills.harness.injector import Injector
from ledgerops.drills.harness.target_app import TargetApp

PLAN = """
seed: 61
start: now
phases:
  - {shape: constant, rate: 300, duration: 45s}
  - {shape: constant, rate: 30}
"""


def start(app: TargetApp) -> None:
    app.query(app.rows(PLAN))


def inject(injector: Injector) -> None:
    injector.control.set(sleep=4.0)


def repair(injector: Injector) -> None:
    injector.control.set(sleep=None)


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
        may=LATE_SYMPTOMS,
    ),
)
