"""More load than the query can process, at once or slowly."""

from __future__ import annotations

from ledgerops.drills.harness.drill import LATE_SYMPTOMS, Drill, cause
from ledgerops.drills.harness.effects import batches_outlast
from ledgerops.drills.harness.slow_udf import waiting
from ledgerops.drills.scoring.lateness import rows_wait

# F01, overload: from the onset, twice as many rows arrive as the query can process.
#
# Each row waits 10 ms, as for a remote service: two tasks process 200 rows per second, less the planning time, on any
# machine.
OVERLOAD_CAP = 320  # rows a batch, which then takes 1.6 s plus its planning
OVERLOAD_PLAN = """
seed: 31
start: now
phases:
  - {shape: constant, rate: 70, duration: 45s}
  - {shape: constant, rate: 260, duration: 45s}
  - {shape: constant, rate: 20}
partitions: {count: 2}
"""
OVERLOAD = Drill(
    name="overload",
    id="F01",
    summary="260 rows per second where at most 160 can be processed",
    start=lambda app: app.query(waiting(app.rows(OVERLOAD_PLAN, max_rows=OVERLOAD_CAP), 10)),
    effect=rows_wait(6.0, OVERLOAD_PLAN),
    recovery_seconds=50.0,
    heavy=True,  # the fixed cost of a batch must not depend on other drills
    truth=cause("input-overload", component=("source",), remedy="cores|producer", may=LATE_SYMPTOMS),
)


# F02, creep: from the onset, the load grows by one row per second every second, past the capacity of the query.
#
# As in the overload drill, each row waits 10 ms. Batches fill the 2 s interval at about 150 rows per second, after 90
# s.
CREEP_PLAN = """
seed: 32
start: now
phases:
  - {shape: constant, rate: 60, duration: 45s}
  - {shape: ramp, from: 60, to: 190, duration: 130s}
  - {shape: constant, rate: 20}
partitions: {count: 2}
"""
CREEP = Drill(
    name="creep",
    id="F02",
    summary="the load rises steadily past the capacity of the query",
    start=lambda app: app.query(waiting(app.rows(CREEP_PLAN), 10)),
    effect=batches_outlast(2.2),
    fault_seconds=130.0,
    heavy=True,  # the fixed cost of a batch must not depend on other drills
    truth=cause("slow-creep", component=("query",), remedy="cores|producer", may=(*LATE_SYMPTOMS, "input-overload")),
)


DRILLS = (OVERLOAD, CREEP)
