"""X5, noisy neighbour: of two queries in one driver one begins to compute on every core in each batch.

Its own batches outlast their interval, too; but only the other one suffers for nothing that it does.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from ledgerops.drills.harness.drill import Drill, Fault, Truth
from ledgerops.drills.harness.effects import batches_outlast
from ledgerops.drills.harness.fault_control import Chaos
from ledgerops.drills.harness.injector import Surgeon
from ledgerops.drills.harness.target_app import Patient
from ledgerops.ledger.sources.workers import make_importable

if TYPE_CHECKING:
    import pyarrow as pa

PLAN = """
seed: 55
start: now
phases: [{shape: constant, rate: 100}]
"""
TASKS = 4  # two rounds on two cores: whoever asks for a core meanwhile waits for the second, too
BURN = 2.2  # seconds of computing in each of them


def hungry(control: Path) -> object:
    """A step that hands rows on as they are, and computes for nothing before the first when it is told to."""
    chaos = Chaos(control)

    def step(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        until = time.monotonic() + float(chaos("burn", 0.0))
        while time.monotonic() < until:
            sum(range(1000))
        yield from batches

    return step


def start(patient: Patient) -> None:
    make_importable(patient.spark)
    patient.job("dedup_transactions", {"transactions": patient.rows(PLAN)})
    rows = patient.rows(PLAN.replace("seed: 55", "seed: 56")).repartition(TASKS)
    patient.query(rows.mapInArrow(hungry(patient.folder / "control.json"), rows.schema), role="hog")


def inject(surgeon: Surgeon) -> None:
    surgeon.chaos.set(burn=BURN)


def repair(surgeon: Surgeon) -> None:
    surgeon.chaos.set(burn=None)


DRILL = Drill(
    name="noisy-neighbour",
    id="X5",
    kind="combined",
    summary="another query of the driver begins to take every core",
    start=start,
    inject=inject,
    repair=repair,
    effect=batches_outlast(2.0),
    roles=("main", "hog"),
    heavy=True,
    truth=Truth(
        faults=(Fault(rules=("noisy-neighbour",), component=("query={hog}",), remedy="fair|{hog}"),),
        may=("trigger-overrun", "falling-behind", "freshness-breach", "cpu-saturated"),
        elsewhere=("trigger-overrun", "falling-behind", "freshness-breach", "cpu-saturated", "python-bound"),
    ),
)
