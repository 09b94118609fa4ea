"""F20b, ledger imbalance: from the onset, a step of a job that conserves money loses one row in 50.

Batches stay as fast as before, and there is no backlog.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import ledgerops
from ledgerops.drills.harness.bundle import Bundle
from ledgerops.drills.harness.drill import Drill, cause
from ledgerops.drills.harness.fault_control import FaultControl
from ledgerops.drills.harness.target_app import TargetApp
from ledgerops.ledger.sources.workers import make_importable

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

PLAN = "{seed: 25, start: now, phases: [{shape: constant, rate: 200}]}"
EVERY = 50  # rows, of which one is lost


def careless(control: Path) -> object:
    """A step of the query: passes rows on unchanged, but drops some while the control file says so."""
    faults = FaultControl(control)

    def step(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import numpy as np
        import pyarrow

        for batch in batches:
            lost = faults("lose") and np.arange(batch.num_rows) % EVERY == 0
            yield batch if lost is None or lost is False else batch.filter(pyarrow.array(~lost))

    return step


def start(app: TargetApp) -> None:
    make_importable(app.spark)

    def transform(transactions: DataFrame) -> DataFrame:
        entered = ledgerops.book(transactions, "in", amount="amount")
        passed = entered.mapInArrow(careless(app.folder / "control.json"), entered.schema)
        return ledgerops.book(passed, "out", amount="amount")

    app.job("masked_transactions", {"transactions": app.rows(PLAN)}, transform=transform)


def effect(bundle: Bundle) -> float | None:
    """When the first batch that was planned after the injection is done: its rows were lost."""
    done = (each.done for each in bundle.commits() if each.planned >= bundle.times["injected"] and each.done)
    return next(done, None)


DRILL = Drill(
    name="ledger-imbalance",
    id="F20b",
    summary="a job that conserves money loses one row in 50",
    start=start,
    control={"lose": True},
    effect=effect,
    recovery_seconds=40.0,  # a finding about a wrong batch stays for half a minute
    truth=cause("ledger-imbalance", component=("query",), remedy="stop the query"),
)
