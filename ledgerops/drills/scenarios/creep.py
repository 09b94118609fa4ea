"""F02, creep: from the onset, the load grows by one row per second every second, past the capacity of the query.

As in the overload drill, each row waits 10 ms. Batches fill the 2 s interval at about 150 rows per second, after 90
s.
"""

from ledgerops.drills.harness.drill import LATE_SYMPTOMS, Drill, cause
from ledgerops.drills.harness.effects import batches_outlast
from ledgerops.drills.harness.slow_udf import waiting

PLAN = """
seed: 32
start: now
phases:
  - {shape: constant, rate: 60, duration: 45s}
  - {shape: ramp, from: 60, to: 190, duration: 130s}
  - {shape: constant, rate: 20}
partitions: {count: 2}
"""
DRILL = Drill(
    name="creep",
    id="F02",
    summary="the load rises steadily past the capacity of the query",
    start=lambda app: app.query(waiting(app.rows(PLAN), 10)),
    effect=batches_outlast(2.2),
    fault_seconds=130.0,
    heavy=True,  # the fixed cost of a batch must not depend on other drills
    truth=cause("slow-creep", component=("query",), remedy="cores|producer", may=(*LATE_SYMPTOMS, "input-overload")),
)
