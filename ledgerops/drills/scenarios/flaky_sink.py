"""F04, flaky sink: from the onset, every fourth write stalls for 3 s. The others stay fast."""

from ledgerops.drills.harness.drill import LATE_SYMPTOMS, Drill, Fault, Truth
from ledgerops.drills.harness.effects import batches_outlast
from ledgerops.drills.harness.injector import Injector
from ledgerops.drills.harness.target_app import TargetApp

PLAN = """
seed: 41
start: now
phases: [{shape: constant, rate: 100}]
"""


def start(app: TargetApp) -> None:
    app.query(app.rows(PLAN), trigger=1.0)


def inject(injector: Injector) -> None:
    injector.control.set(stall=3.0, every=4)


def repair(injector: Injector) -> None:
    injector.control.set(stall=None, every=None)


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
        may=LATE_SYMPTOMS,
    ),
)
