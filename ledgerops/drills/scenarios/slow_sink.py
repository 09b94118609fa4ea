"""F03, slow sink: from the onset, each write takes 3.5 s. The trigger interval is 2 s."""

from ledgerops.drills.harness.drill import LATE_SYMPTOMS, Drill, cause
from ledgerops.drills.harness.effects import batches_outlast

PLAN = "{seed: 11, start: now, phases: [{shape: constant, rate: 200}]}"
DRILL = Drill(
    name="slow-sink",
    id="F03",
    summary="each write takes 3.5 s at a trigger of 2 s",
    start=lambda app: app.job("dedup_transactions", {"transactions": app.rows(PLAN)}),
    control={"sleep": 3.5},
    effect=batches_outlast(2.0),
    truth=cause("slow-sink", component=("sink",), remedy="write", may=LATE_SYMPTOMS),
)
