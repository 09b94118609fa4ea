"""F04, flaky sink: from the onset, every fourth write stalls for 3 s. The others stay fast."""

from ledgerops.drills.harness.drill import LATE_SYMPTOMS, Drill, cause
from ledgerops.drills.harness.effects import batches_outlast

PLAN = "{seed: 41, start: now, phases: [{shape: constant, rate: 100}]}"
DRILL = Drill(
    name="flaky-sink",
    id="F04",
    summary="every fourth write stalls for 3 s",
    start=lambda app: app.query(app.rows(PLAN), trigger=1.0),
    control={"stall": 3.0, "every": 4},
    effect=batches_outlast(2.0),
    fault_seconds=60.0,
    recovery_seconds=50.0,
    truth=cause("intermittent-sink", component=("sink",), remedy="slow log|timeout", may=LATE_SYMPTOMS),
)
