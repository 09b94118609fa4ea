"""H11, first-batch backlog: a new query starts five minutes back with a cap on its batch size, and catches up.

It reads ten times faster than rows arrive, so the lag shrinks with each batch.
"""

from ledgerops.drills.harness.drill import Drill
from ledgerops.drills.harness.target_app import TargetApp

PLAN = "{seed: 111, start: now, phases: [{shape: constant, rate: 200}]}"
BEHIND = 300.0  # seconds
MOST = 4000  # rows a batch


def start(app: TargetApp) -> None:
    rows = app.rows(PLAN, origin=app.origin - BEHIND, max_rows=MOST)
    app.job("dedup_transactions", {"transactions": rows})


DRILL = Drill(
    name="backlog",
    id="H11",
    kind="control",
    summary="a new query starts five minutes back and catches up",
    start=start,
    fault_seconds=15.0,
)
