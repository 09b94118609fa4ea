"""F26, stale snapshots: state store maintenance runs once an hour, so no snapshot is uploaded."""

from __future__ import annotations

from ledgerops.drills.harness.bundle import Bundle
from ledgerops.drills.harness.drill import Drill, cause

SECONDS = 180.0  # three times Spark's own interval
PLAN = "{seed: 11, start: now, phases: [{shape: constant, rate: 200}]}"


def effect(bundle: Bundle) -> float | None:
    """When the oldest change has waited for so long without a file of a snapshot; None if there is one."""
    commits = bundle.commits()
    if not commits or any(bundle.checkpoint().glob("state/*/*/**/*.zip")):
        return None
    at = commits[0].planned + SECONDS
    return at if at <= bundle.times["ended"] else None


DRILL = Drill(
    name="stale-snapshots",
    id="F26",
    summary="no snapshot of the state is uploaded, because maintenance runs once an hour",
    start=lambda app: app.job("dedup_transactions", {"transactions": app.rows(PLAN)}),
    effect=effect,
    truth=cause("state-snapshot-lag", component=("operator",), remedy="maintenance"),
    onset=165.0,
    fault_seconds=45.0,
    recovery_seconds=0.0,
    recovers=False,
    conf=(("spark.sql.streaming.stateStore.maintenanceInterval", "3600s"),),
)
