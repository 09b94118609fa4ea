"""F13, hung query: from the onset, the sink blocks forever.

Spark reports no more progress, and all gauges keep their last values.
"""

from ledgerops.drills.harness.drill import LATE_SYMPTOMS, Drill, cause
from ledgerops.drills.harness.effects import nothing_done_for
from ledgerops.drills.harness.target_app import TargetApp

PLAN = "{seed: 131, start: now, phases: [{shape: constant, rate: 100}]}"
SILENCE = 10.0  # seconds without a result, where one comes each two: whoever reads them notices


def start(app: TargetApp) -> None:
    app.job("dedup_transactions", {"transactions": app.rows(PLAN)})


DRILL = Drill(
    name="hung-sink",
    id="F13",
    summary="the sink blocks forever",
    start=start,
    control={"block": True},
    effect=nothing_done_for(SILENCE),
    fault_seconds=60.0,
    recovery_seconds=30.0,
    truth=cause("query-stuck", component=("query={main}",), remedy="thread dump|restart", may=LATE_SYMPTOMS),
)
