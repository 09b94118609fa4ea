"""F18, slow checkpoint: from the onset the file system of the checkpoint takes 0.6 s to make or rename a file."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

from ledgerops.drills.harness.bundle import Bundle
from ledgerops.drills.harness.drill import LATE, Drill, Fault, Truth
from ledgerops.drills.harness.injector import Surgeon
from ledgerops.drills.harness.slowfs import SlowFiles
from ledgerops.drills.harness.target_app import TRIGGER, Patient

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

PLAN = """
seed: 11
start: now
phases: [{shape: constant, rate: 200}]
"""


def files(folder: Any) -> SlowFiles:
    return SlowFiles(folder / "files")


def prepare(surgeon: Surgeon) -> dict[str, Any]:
    return {"conf": dict(files(surgeon.folder).conf)}


def query(patient: Patient, rows: DataFrame) -> None:
    """Starts a query whose checkpoint is on that file system."""
    slow = files(patient.folder)
    slow.install(patient.spark)
    patient.query(rows, location=slow.location(patient.checkpoint()))


def start(patient: Patient) -> None:
    """A filter: it has no state, so the checkpoint is only the log of its batches."""
    query(patient, patient.rows(PLAN).where("amount > 100"))


def inject(surgeon: Surgeon) -> None:
    files(surgeon.folder).slow(0.6)


def repair(surgeon: Surgeon) -> None:
    files(surgeon.folder).heal()


def effect(bundle: Bundle) -> float | None:
    """The first batch that follows another so late that the other must have outlasted its interval.

    A file of the checkpoint is as old as its content, and the wait comes before and after that is written: so the time
    from one to the next tells it, and that within one batch does not.
    """
    for before, after in pairwise(bundle.commits()):
        if before.planned >= bundle.times["injected"] and after.planned - before.planned > 1.25 * TRIGGER:
            return before.planned + TRIGGER
    return None


DRILL = Drill(
    name="slow-checkpoint",
    id="F18",
    kind="fault",
    summary="the checkpoint's file system takes 0.6 s for each file made or renamed",
    prepare=prepare,
    start=start,
    inject=inject,
    repair=repair,
    effect=effect,
    onset=60.0,  # a busy machine takes 20 s for the first batches
    truth=Truth(
        faults=(Fault(rules=("checkpoint-slow",), remedy="checkpoint|storage|disk"),),
        may=LATE,
    ),
)
