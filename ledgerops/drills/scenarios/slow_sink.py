"""F03, slow sink: from the onset, each write takes 3.5 s. The trigger interval is 2 s."""

from ledgerops.drills.harness.drill import LATE_SYMPTOMS, Drill, Fault, Truth
from ledgerops.drills.harness.effects import batches_outlast
from ledgerops.drills.harness.injector import Injector
from ledgerops.drills.harness.target_app import TargetApp

PLAN = """
seed: 11
start: now
phases: [{shape: constant, rate: 200}]
"""


def start(app: TargetApp) -> None:
    app.job("dedup_transactions", {"transactions": app.rows(PLAN)})


def inject(injector: Injector) -> None:
    injector.control.set(sleep=3.5)


def repair(injector: Injector) -> None:
    injector.control.set(sleep=None)


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
        may=LATE_SYMPTOMS,
    ),
)
