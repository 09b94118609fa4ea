"""F01, overload: from the onset, twice as many rows arrive as the query can process.

Each row waits 10 ms, as for a remote service: two tasks process 200 rows per second, less the planning time, on any
machine.
"""

from ledgerops.drills.harness.drill import LATE_SYMPTOMS, Drill, cause
from ledgerops.drills.harness.slow_udf import waiting
from ledgerops.drills.scoring.lateness import rows_wait

CAP = 320  # rows a batch: it then takes 1.6 s and what planning takes
PLAN = """
seed: 31
start: now
phases:
  - {shape: constant, rate: 70, duration: 45s}
  - {shape: constant, rate: 260, duration: 45s}
  - {shape: constant, rate: 20}
partitions: {count: 2}
"""
DRILL = Drill(
    name="overload",
    id="F01",
    summary="260 rows per second where at most 160 can be processed",
    start=lambda app: app.query(waiting(app.rows(PLAN, max_rows=CAP), 10)),
    effect=rows_wait(6.0, PLAN),
    recovery_seconds=50.0,
    heavy=True,  # the fixed cost of a batch must not depend on other drills
    truth=cause("input-overload", component=("source",), remedy="cores|producer", may=LATE_SYMPTOMS),
)
