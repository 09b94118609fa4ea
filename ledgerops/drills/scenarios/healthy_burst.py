"""H1, burst: three times the usual load for 20 s, which a query with power to spare works off as it comes."""

from ledgerops.drills.harness.drill import Drill
from ledgerops.drills.harness.target_app import Patient

PLAN = """
seed: 101
start: now
phases:
  - {shape: constant, rate: 200, duration: 45s}
  - {shape: constant, rate: 600, duration: 20s}
  - {shape: constant, rate: 200}
duplicates: {share: 0.01, within: 5s}
"""


def start(patient: Patient) -> None:
    patient.job("dedup_transactions", {"transactions": patient.rows(PLAN)})


DRILL = Drill(
    name="burst",
    id="H1",
    kind="control",
    summary="three times the load for 20 s",
    start=start,
    fault_seconds=20.0,
)
