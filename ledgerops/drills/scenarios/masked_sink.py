"""X6, masked fault: the sink becomes slow just when the load falls to a tenth, so that no backlog grows."""

from ledgerops.drills.harness.drill import LATE_SYMPTOMS, Drill, cause
from ledgerops.drills.harness.effects import batches_outlast

PLAN = """
seed: 61
start: now
phases:
  - {shape: constant, rate: 300, duration: 45s}
  - {shape: constant, rate: 30}
"""
DRILL = Drill(
    name="masked-sink",
    id="X6",
    kind="combined",
    summary="each write takes 4 s while the load falls to a tenth",
    start=lambda app: app.query(app.rows(PLAN)),
    control={"sleep": 4.0},
    effect=batches_outlast(2.0),
    truth=cause("slow-sink", component=("sink",), remedy="write", may=LATE_SYMPTOMS),
)
