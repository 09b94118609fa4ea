"""Straggler: from the onset, one of eight tasks takes 4 s longer than the others for as many rows."""

from ledgerops.drills.harness import slow_udf
from ledgerops.drills.harness.drill import LATE_SYMPTOMS, Drill, cause
from ledgerops.drills.harness.effects import batches_outlast
from ledgerops.drills.harness.target_app import TargetApp
from ledgerops.ledger.sources.workers import make_importable

PLAN = "{seed: 211, start: now, phases: [{shape: constant, rate: 200}]}"


def start(app: TargetApp) -> None:
    make_importable(app.spark)
    rows = app.rows(PLAN).repartition(slow_udf.TASKS)
    app.query(rows.mapInArrow(slow_udf.one_task(app.folder / "control.json", 1), rows.schema))


DRILL = Drill(
    name="straggler",
    id="P02",
    summary="one of eight tasks takes 4 s longer for as many rows",
    start=start,
    control={"straggle": 4.0},
    effect=batches_outlast(2.0),
    master=slow_udf.MASTER,
    truth=cause("straggler", component=("stage=task 1",), remedy="partition|machine", may=LATE_SYMPTOMS),
)
