"""F18b, full checkpoint: the driver may write no more to files, as with a quota that is used up, for 30 s.

The limit comes between two batches, so the first file that cannot be written is that of the next one's offsets. The
query dies of it, is started again, and dies again until there is room.
"""

from __future__ import annotations

import resource

from ledgerops.drills.harness.drill import Drill, Fault, Truth
from ledgerops.drills.harness.effects import dies
from ledgerops.drills.harness.injector import Surgeon
from ledgerops.drills.harness.target_app import Patient
from ledgerops.errors import UserError

PLAN = """
seed: 11
start: now
phases: [{shape: constant, rate: 200}]
"""


def start(patient: Patient) -> None:
    """A sink of Spark's own: of an exception in a Python function Spark hands on the first line only."""
    rows = patient.rows(PLAN).withWatermark("event_time", "10 seconds")
    once = rows.dropDuplicatesWithinWatermark(["transaction_id"])

    patient.query(once, sink="noop", keep=True)


def inject(surgeon: Surgeon) -> None:
    commits = surgeon.folder / "work" / "checkpoints" / "main" / "commits"
    before = len(list(commits.glob("[0-9]*")))
    surgeon.until(lambda: len(list(commits.glob("[0-9]*"))) > before, 30.0, "the end of a batch")
    _limit(surgeon, 0)


def repair(surgeon: Surgeon) -> None:
    _limit(surgeon, None)


def _limit(surgeon: Surgeon, size: int | None) -> None:
    """The largest size of a file, in bytes, that the driver's JVM may write: beyond it a write fails."""
    found = surgeon.children("java")
    if not found:
        raise UserError(f"drill {surgeon.drill.name}: the driver has no JVM")
    for jvm in found:
        _, most = resource.prlimit(jvm.pid, resource.RLIMIT_FSIZE)
        resource.prlimit(jvm.pid, resource.RLIMIT_FSIZE, (most if size is None else size, most))


DRILL = Drill(
    name="full-checkpoint",
    id="F18b",
    kind="fault",
    summary="the checkpoint's storage takes no more; the query dies and is started again",
    start=start,
    inject=inject,
    repair=repair,
    effect=dies(),
    onset=60.0,  # a busy machine takes 20 s for the first batches
    fault_seconds=30.0,
    truth=Truth(
        faults=(Fault(rules=("checkpoint-full",), component=("query=checkpoint",), remedy="storage|room|quota"),),
        may=("query-failed", "crash-loop", "falling-behind", "freshness-breach"),
    ),
)
