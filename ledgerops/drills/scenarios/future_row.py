"""F09, future timestamp: one row is dated an hour ahead. The watermark follows it and never moves back."""

from ledgerops.drills.harness.drill import Drill, cause
from ledgerops.drills.harness.effects import at_once

PLAN = """
seed: 39
start: now
partitions: {count: 2}
phases: [{shape: constant, rate: 200}]
disorder: {late: {share: 0.01, delay: uniform, low: 1s, high: 10s}}
changes:
  - {from: 45s, to: 90s, disorder: {future: {count: 1, ahead: 1h}}}
"""
DRILL = Drill(
    name="future-row",
    id="F09",
    summary="one row is dated an hour ahead",
    start=lambda app: app.job("dedup_transactions", {"transactions": app.rows(PLAN)}),
    effect=at_once,
    fault_seconds=30.0,
    recovery_seconds=5.0,
    recovers=False,
    truth=cause("watermark-jump", component=("source=batch",), remedy="ahead of the clock", may=("rows-dropped",)),
)
