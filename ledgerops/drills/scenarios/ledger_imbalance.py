"""F20b, ledger imbalance: from the onset a step of a job that conserves money loses one row in fifty.

The batches are as quick as before, and the backlog stays empty.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import ledgerops
from ledgerops.drills.harness.bundle import Bundle
from ledgerops.drills.harness.drill import Drill, Fault, Truth
from ledgerops.drills.harness.fault_control import Chaos
from ledgerops.drills.harness.injector import Surgeon
from ledgerops.drills.harness.target_app import Patient
from ledgerops.ledger.sources.workers import make_importable

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

PLAN = """
seed: 25
start: now
phases: [{shape: constant, rate: 200}]
"""
EVERY = 50  # rows, of which one is lost


def careless(control: Path) -> object:
    """A step of the query: hands rows on as they are, and leaves some out when it is told to."""
    chaos = Chaos(control)

    def step(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import numpy as np
        import pyarrow

        for batch in batches:
            lost = chaos("lose") and np.arange(batch.num_rows) % EVERY == 0
            yield batch if lost is None or lost is False else batch.filter(pyarrow.array(~lost))

    return step


def start(patient: Patient) -> None:
    make_importable(patient.spark)

    def transform(transactions: DataFrame) -> DataFrame:
        entered = ledgerops.book(transactions, "in", amount="amount")
        passed = entered.mapInArrow(careless(patient.folder / "control.json"), entered.schema)
        return ledgerops.book(passed, "out", amount="amount")

    patient.job("masked_transactions", {"transactions": patient.rows(PLAN)}, transform=transform)


def inject(surgeon: Surgeon) -> None:
    surgeon.chaos.set(lose=True)


def repair(surgeon: Surgeon) -> None:
    surgeon.chaos.set(lose=None)


def effect(bundle: Bundle) -> float | None:
    """When the first batch that was planned after the injection is done: its rows were lost."""
    done = (each.done for each in bundle.commits() if each.planned >= bundle.times["injected"] and each.done)
    return next(done, None)


DRILL = Drill(
    name="ledger-imbalance",
    id="F20b",
    kind="fault",
    summary="a job that conserves money loses one row in fifty",
    start=start,
    inject=inject,
    repair=repair,
    effect=effect,
    recovery_seconds=40.0,  # a wrong batch is told of for half a minute
    truth=Truth(
        faults=(Fault(rules=("ledger-imbalance",), component=("query",), remedy="stop the query"),),
    ),
)
