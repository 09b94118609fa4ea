"""H11, first-batch backlog: a new query begins five minutes back, at a bounded number of rows a batch, and catches up.

It reads ten times as fast as rows come, so the lag falls from batch to batch.
"""

from ledgerops.drills.harness.drill import Drill
from ledgerops.drills.harness.target_app import Patient

PLAN = """
seed: 111
start: now
phases: [{shape: constant, rate: 200}]
"""
BEHIND = 300.0  # seconds
MOST = 4000  # rows a batch


def start(patient: Patient) -> None:
    rows = patient.rows(PLAN, origin=patient.origin - BEHIND, max_rows=MOST)
    patient.job("dedup_transactions", {"transactions": rows})


DRILL = Drill(
    name="backlog",
    id="H11",
    kind="control",
    summary="a new query that begins five minutes back and catches up",
    start=start,
    fault_seconds=15.0,
)
