"""F18, slow checkpoint: from the onset, the checkpoint file system takes 0.6 s to create or rename a file."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

from ledgerops.drills.harness.bundle import Bundle
from ledgerops.drills.harness.drill import LATE_SYMPTOMS, Drill, cause
from ledgerops.drills.harness.injector import Injector
from ledgerops.drills.harness.slowfs import SlowFiles
from ledgerops.drills.harness.target_app import TRIGGER, TargetApp

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

PLAN = "{seed: 11, start: now, phases: [{shape: constant, rate: 200}]}"


def files(folder: Any) -> SlowFiles:
    """The slow file system whose files lie in `folder/files`."""
    return SlowFiles(folder / "files")


def prepare(injector: Injector) -> dict[str, Any]:
    return {"conf": dict(files(injector.folder).conf)}


def query(app: TargetApp, rows: DataFrame) -> None:
    """Starts a query whose checkpoint is on that file system."""
    slow = files(app.folder)
    slow.install(app.spark)
    app.query(rows, location=slow.location(app.checkpoint()))


def start(app: TargetApp) -> None:
    """A filter: it has no state, so the checkpoint is only the log of its batches."""
    query(app, app.rows(PLAN).where("amount > 100"))


def repair(injector: Injector) -> None:
    files(injector.folder).heal()


def effect(bundle: Bundle) -> float | None:
    """The first batch that starts so late that the one before must have outlasted its interval.

    A file of the checkpoint is as old as its content, and the wait comes before and after that is written: so the time
    from one file to the next shows it, and the time within one batch does not.
    """
    for before, after in pairwise(bundle.commits()):
        if before.planned >= bundle.times["injected"] and after.planned - before.planned > 1.25 * TRIGGER:
            return before.planned + TRIGGER
    return None


DRILL = Drill(
    name="slow-checkpoint",
    id="F18",
    summary="the checkpoint file system takes 0.6 s for each file created or renamed",
    prepare=prepare,
    start=start,
    inject=lambda injector: files(injector.folder).slow(0.6),
    repair=repair,
    effect=effect,
    onset=60.0,  # the first batches take 20 s on a busy machine
    truth=cause("checkpoint-slow", remedy="checkpoint|storage|disk", may=LATE_SYMPTOMS),
)
