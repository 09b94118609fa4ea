"""F01, overload step: from the onset twice as many rows come as the query works off.

Each row waits 10 ms for an answer, as of a remote service: two tasks at a time do 200 rows a second, less what planning
takes, on any machine.
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from ledgerops.drills.harness.drill import LATE, Drill, Fault, Truth
from ledgerops.drills.harness.target_app import Patient
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


def asked(rows: DataFrame, milliseconds: int = 10) -> DataFrame:
    """Each row with an answer for which its task waited."""
    return rows.withColumn("answer", F.expr(f"reflect('java.lang.Thread', 'sleep', {milliseconds}L)"))


def start(patient: Patient) -> None:
    patient.query(asked(patient.rows(PLAN, max_rows=CAP)))


DRILL = Drill(
    name="overload",
    id="F01",
    kind="fault",
    summary="260 rows a second where at most 160 can be worked off",
    start=start,
    effect=rows_wait(6.0, PLAN),
    recovery_seconds=50.0,
    heavy=True,  # what a batch costs beside its rows must not hang on what else runs
    truth=Truth(
        faults=(Fault(rules=("input-overload",), component=("source",), remedy="cores|producer"),),
        may=LATE,
    ),
)
