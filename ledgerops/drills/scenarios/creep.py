"""F02, creep: the load rises from the onset by one row a second each second, past what the query can work off.

As in the overload drill each row waits 10 ms: the interval of 2 s is full at about 150 rows a second, after 90 s.
"""

from ledgerops.drills.harness.drill import Drill, Fault, Truth
from ledgerops.drills.harness.effects import batches_outlast
from ledgerops.drills.harness.target_app import Patient
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


def start(patient: Patient) -> None:
    patient.query(asked(patient.rows(PLAN)))


DRILL = Drill(
    name="creep",
    id="F02",
    kind="fault",
    summary="the load rises steadily past what can be worked off",
    start=start,
    effect=batches_outlast(2.2),
    fault_seconds=130.0,
    heavy=True,  # what a batch costs beside its rows must not hang on what else runs
    truth=Truth(
        faults=(Fault(rules=("slow-creep",), component=("query",), remedy="cores|producer"),),
        may=("input-overload", "trigger-overrun", "falling-behind", "freshness-breach"),
    ),
)
