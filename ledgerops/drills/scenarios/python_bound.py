"""Python bound: from the onset a function in Python takes 25 ms for each row instead of none.

It writes without foreachBatch, behind which Spark tells no time of Python.
"""

from __future__ import annotations

from ledgerops.drills.harness import slow_udf
from ledgerops.drills.harness.drill import LATE, Drill, Fault, Truth
from ledgerops.drills.harness.effects import batches_outlast
from ledgerops.drills.harness.injector import Surgeon
from ledgerops.drills.harness.target_app import Patient
from ledgerops.ledger.sources.workers import make_importable

PLAN = """
seed: 201
start: now
phases: [{shape: constant, rate: 100}]
partitions: {count: 2}
"""


def start(patient: Patient) -> None:
    make_importable(patient.spark)
    rows = slow_udf.by_partition(patient, PLAN)
    asked = rows.mapInArrow(slow_udf.each_row(patient.folder / "control.json", "row"), rows.schema)

    patient.query(asked, sink="noop")


def inject(surgeon: Surgeon) -> None:
    surgeon.chaos.set(row=0.025)


def repair(surgeon: Surgeon) -> None:
    surgeon.chaos.set(row=None)


DRILL = Drill(
    name="python-bound",
    id="P01",
    kind="fault",
    summary="a function in Python takes 25 ms for each row",
    start=start,
    inject=inject,
    repair=repair,
    effect=batches_outlast(2.0),
    truth=Truth(
        faults=(Fault(rules=("python-bound",), component=("stage=Python",), remedy="pandas_udf"),),
        may=LATE,
    ),
)
