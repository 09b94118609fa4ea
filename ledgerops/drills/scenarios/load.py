"""More load than the query can process, at once or slowly.

Each row waits 10 ms, as for a remote service: two tasks process 200 rows per second, less the planning time, on any
machine.
"""

from ledgerops.drills.applications.outside import waiting
from ledgerops.drills.harness.case import LATE_SYMPTOMS, TWO_PARTITIONS, scripted, stepped
from ledgerops.drills.harness.effects import batches_outlast, rows_wait

OVERLOAD_CAP = 320  # rows a batch, which then takes 1.6 s plus its planning
OVERLOAD_PLAN = stepped(31, (70, 45), (260, 45), (20, None), more=TWO_PARTITIONS)
# batches fill the 2 s interval at about 150 rows per second, after 90 s
CREEP_PLAN = """
seed: 32
start: now
phases:
  - {shape: constant, rate: 60, duration: 45s}
  - {shape: ramp, from: 60, to: 190, duration: 130s}
  - {shape: constant, rate: 20}
partitions: {count: 2}
"""

# heavy: the fixed cost of a batch must not depend on other drills
DRILLS = (
    scripted(
        name="overload", id="F01", text="260 rows per second where at most 160 can be processed",
        start=lambda app: app.query(waiting(app.rows(OVERLOAD_PLAN, max_rows=OVERLOAD_CAP), 10)),
        effect=rows_wait(6.0, OVERLOAD_PLAN), seconds=140.0, heavy=True,
        expected=("input-overload",), component=("source",), remedy="cores|producer", may=LATE_SYMPTOMS,
    ),
    scripted(
        name="creep", id="F02", text="the load rises steadily past the capacity of the query",
        start=lambda app: app.query(waiting(app.rows(CREEP_PLAN), 10)),
        effect=batches_outlast(2.2), fault_seconds=130.0, seconds=205.0, heavy=True,
        expected=("slow-creep",), component=("query",), remedy="cores|producer",
        may=(*LATE_SYMPTOMS, "input-overload"),
    ),
)  # fmt: skip
