"""F01, overload: from the onset, twice as many rows arrive as the query can process.

Each row waits 10 ms, as for a remote service: two tasks process 200 rows per second, less the planning time, on any
machine.
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from ledgerops.drills.harness.drill import LATE_SYMPTOMS, Drill, Fault, Truth
from ledgerops.drills.harness.target_app import TargetApp
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


def start(app: TargetApp) -> None:
    app.query(asked(app.rows(PLAN, max_rows=CAP)))


DRILL = Drill(
    name="overload",
    id="F01",
    kind="fault",
    summary="260 rows per second where at most 160 can be processed",
    start=start,
    effect=rows_wait(6.0, PLAN),
    recovery_seconds=50.0,
    heavy=True,  # the fixed cost of a batch must not depend on other drills
    truth=Truth(
        faults=(Fault(rules=("input-overload",), component=("source",), remedy="cores|producer"),),
        may=LATE_SYMPTOMS,
    ),
)
