"""F18b, full checkpoint storage: for 30 s the driver cannot write to files, as with an exhausted quota.

The limit is set between two batches, so the next offsets file is the first one that cannot be written. The query
fails, is restarted, and fails again until there is space.
"""

from __future__ import annotations

import resource

from ledgerops.checkpoint.batch_log import BatchLog
from ledgerops.drills.harness.drill import Drill, cause
from ledgerops.drills.harness.effects import dies
from ledgerops.drills.harness.injector import Injector
from ledgerops.drills.harness.target_app import TargetApp
from ledgerops.errors import UserError

PLAN = "{seed: 11, start: now, phases: [{shape: constant, rate: 200}]}"


def start(app: TargetApp) -> None:
    """A sink of Spark's own: of an exception in a Python function Spark hands on the first line only."""
    rows = app.rows(PLAN).withWatermark("event_time", "10 seconds")
    once = rows.dropDuplicatesWithinWatermark(["transaction_id"])

    app.query(once, sink="noop", keep=True)


def inject(injector: Injector) -> None:
    log = BatchLog(injector.folder / "work" / "checkpoints" / "main")
    before = log.newest_committed
    injector.until(lambda: log.newest_committed != before, 30.0, "the end of a batch")
    _limit(injector, 0)


def _limit(injector: Injector, size: int | None) -> None:
    """The largest size of a file, in bytes, that the driver's JVM may write: beyond it a write fails."""
    found = injector.children("java")
    if not found:
        raise UserError(f"drill {injector.drill.name}: the driver has no JVM")
    for jvm in found:
        _, most = resource.prlimit(jvm.pid, resource.RLIMIT_FSIZE)
        resource.prlimit(jvm.pid, resource.RLIMIT_FSIZE, (most if size is None else size, most))


DRILL = Drill(
    name="full-checkpoint",
    id="F18b",
    summary="the checkpoint storage is full; the query fails and is restarted",
    start=start,
    inject=inject,
    repair=lambda injector: _limit(injector, None),
    effect=dies(),
    onset=60.0,  # the first batches take 20 s on a busy machine
    fault_seconds=30.0,
    truth=cause(
        "checkpoint-full",
        component=("query=checkpoint",),
        remedy="storage|room|quota",
        may=("query-failed", "crash-loop", "falling-behind", "freshness-breach"),
    ),
)
