"""F19, too many tasks: from the onset, each write shuffles its few rows into 500 partitions.

A task without state takes about 1 ms to start and end. With a state store to load and commit, 200 would be enough.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ledgerops.drills.harness.drill import LATE_SYMPTOMS, Drill, cause
from ledgerops.drills.harness.effects import batches_outlast
from ledgerops.drills.harness.target_app import TargetApp

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

PLAN = "{seed: 191, start: now, phases: [{shape: constant, rate: 60}]}"
USUAL, MANY = 2, 500
TRIGGER = 1.0


def start(app: TargetApp) -> None:
    def write(rows: DataFrame, batch: int) -> None:
        tasks = int(app.control("partitions", USUAL))
        rows.repartition(tasks, "customer_id").write.format("noop").mode("overwrite").save()

    app.query(app.rows(PLAN), write=write, trigger=TRIGGER)


DRILL = Drill(
    name="too-many-tasks",
    id="F19",
    summary="a few rows are shuffled into 500 partitions at a trigger of 1 s",
    start=start,
    control={"partitions": MANY},
    effect=batches_outlast(TRIGGER * 1.33),
    truth=cause("too-many-tasks", component=("stage",), remedy="partitions", may=LATE_SYMPTOMS),
)
