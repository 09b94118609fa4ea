"""H1, burst: three times the usual load for 20 s. The query has enough spare capacity for it."""

from ledgerops.drills.harness.drill import Drill

PLAN = """
seed: 101
start: now
phases:
  - {shape: constant, rate: 200, duration: 45s}
  - {shape: constant, rate: 600, duration: 20s}
  - {shape: constant, rate: 200}
duplicates: {share: 0.01, within: 5s}
"""
DRILL = Drill(
    name="burst",
    id="H1",
    kind="control",
    summary="three times the load for 20 s",
    start=lambda app: app.job("dedup_transactions", {"transactions": app.rows(PLAN)}),
    fault_seconds=20.0,
)
