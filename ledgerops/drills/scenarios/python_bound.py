"""Python bound: from the onset, a Python function takes 25 ms per row instead of none.

The query does not use foreachBatch, behind which Spark reports no Python time.
"""

from __future__ import annotations

from ledgerops.drills.harness import slow_udf
from ledgerops.drills.harness.drill import LATE_SYMPTOMS, Drill, cause
from ledgerops.drills.harness.effects import batches_outlast
from ledgerops.drills.harness.target_app import TargetApp
from ledgerops.ledger.sources.workers import make_importable

PLAN = """
seed: 201
start: now
phases: [{shape: constant, rate: 100}]
partitions: {count: 2}
"""


def start(app: TargetApp) -> None:
    make_importable(app.spark)
    rows = slow_udf.by_partition(app, PLAN)
    asked = rows.mapInArrow(slow_udf.each_row(app.folder / "control.json", "row"), rows.schema)

    app.query(asked, sink="noop")


DRILL = Drill(
    name="python-bound",
    id="P01",
    summary="a Python function takes 25 ms per row",
    start=start,
    control={"row": 0.025},
    effect=batches_outlast(2.0),
    truth=cause("python-bound", component=("stage=Python",), remedy="pandas_udf", may=LATE_SYMPTOMS),
)
