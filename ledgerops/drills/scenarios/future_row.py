"""F09, future timestamp: one row is dated an hour ahead. The watermark follows it and never moves back."""

from ledgerops.drills.harness.drill import Drill, Fault, Truth
from ledgerops.drills.harness.effects import at_once
from ledgerops.drills.harness.target_app import TargetApp

PLAN = """
seed: 39
start: now
partitions: {count: 2}
phases: [{shape: constant, rate: 200}]
disorder: {late: {share: 0.01, delay: uniform, low: 1s, high: 10s}}
changes:
  - {from: 45s, to: 90s, disorder: {future: {count: 1, ahead: 1h}}}
"""


def start(app: TargetApp) -> None:
    app.job("dedup_transactions", {"transactions": app.rows(PLAN)})


DRILL = Drill(
    name="future-row",
    id="F09",
    kind="fault",
    summary="one row is dated an hour ahead",
    start=start,
    effect=at_once,
    fault_seconds=30.0,
    recovery_seconds=5.0,
    recovers=False,
    truth=Truth(
        faults=(Fault(rules=("watermark-jump",), component=("source=batch",), remedy="ahead of the clock"),),
        may=("rows-dropped",),
    ),
)
