"""F02, creep: from the onset, the load grows by one row per second every second, past the capacity of the query.

As in the overload drill, each row waits 10 ms. Batches fill the 2 s interval at about 150 rows per second, after 90
s.
"""

from ledgerops.drills.harness.drill import Drill, Fault, Truth
from ledgerops.drills.harness.effects import batches_outlast
from ledgerops.drills.harness.target_app import TargetApp
from ledgerops.drills.scenarios.overload import asked

PLAN = """
seed: 32
start: now
phases:
  - {shape: constant, rate: 60, duration: 45s}
  - {shape: ramp, from: 60, to: 190, duration: 130s}
  - {shape: constant, rate: 20}
partitions: {count: 2}
"""


def start(app: TargetApp) -> None:
    app.query(asked(app.rows(PLAN)))


DRILL = Drill(
    name="creep",
    id="F02",
    kind="fault",
    summary="the load rises steadily past the capacity of the query",
    start=start,
    effect=batches_outlast(2.2),
    fault_seconds=130.0,
    heavy=True,  # the fixed cost of a batch must not depend on other drills
    truth=Truth(
        faults=(Fault(rules=("slow-creep",), component=("query",), remedy="cores|producer"),),
        may=("input-overload", "trigger-overrun", "falling-behind", "freshness-breach"),
    ),
)
