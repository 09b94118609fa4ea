"""X5, noisy neighbour: one of two queries in a driver starts to compute on every core in each batch.

Its own batches also outlast their interval, but only the other query suffers through no fault of its own.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from ledgerops.drills.harness.drill import LATE_SYMPTOMS, Drill, cause
from ledgerops.drills.harness.effects import batches_outlast
from ledgerops.drills.harness.fault_control import FaultControl
from ledgerops.drills.harness.target_app import TargetApp
from ledgerops.ledger.sources.workers import make_importable

if TYPE_CHECKING:
    import pyarrow as pa

PLAN = "{seed: 55, start: now, phases: [{shape: constant, rate: 100}]}"
TASKS = 4  # two rounds on two cores: whoever asks for a core meanwhile waits for the second, too
BURN = 2.2  # seconds of computing in each of them


def hungry(control: Path) -> object:
    """A step that passes rows on unchanged, after wasting CPU time while the control file says so."""
    faults = FaultControl(control)

    def step(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        until = time.monotonic() + float(faults("burn", 0.0))
        while time.monotonic() < until:
            sum(range(1000))
        yield from batches

    return step


def start(app: TargetApp) -> None:
    make_importable(app.spark)
    app.job("dedup_transactions", {"transactions": app.rows(PLAN)})
    rows = app.rows(PLAN.replace("seed: 55", "seed: 56")).repartition(TASKS)
    app.query(rows.mapInArrow(hungry(app.folder / "control.json"), rows.schema), role="hog")


DRILL = Drill(
    name="noisy-neighbour",
    id="X5",
    kind="combined",
    summary="another query of the driver starts to use every core",
    start=start,
    control={"burn": BURN},
    effect=batches_outlast(2.0),
    roles=("main", "hog"),
    heavy=True,
    truth=cause(
        "noisy-neighbour",
        component=("query={hog}",),
        remedy="fair|{hog}",
        may=(*LATE_SYMPTOMS, "cpu-saturated"),
        elsewhere=(*LATE_SYMPTOMS, "cpu-saturated", "python-bound"),
    ),
)
