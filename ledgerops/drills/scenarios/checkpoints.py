"""Checkpoint storage that is slow or full, and state that is saved too slowly or too rarely."""

from __future__ import annotations

import resource
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ledgerops.checkpoint.batch_log import BatchLog
from ledgerops.drills.harness.bundle import Bundle
from ledgerops.drills.harness.drill import LATE_SYMPTOMS, Drill, cause
from ledgerops.drills.harness.effects import batches_outlast, dies
from ledgerops.drills.harness.injector import Injector
from ledgerops.drills.harness.slowfs import SlowFiles
from ledgerops.drills.harness.target_app import TRIGGER_SECONDS, TargetApp
from ledgerops.errors import UserError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# F18, slow checkpoint: from the onset, the checkpoint file system takes 0.6 s to create or rename a file.
SLOW_CHECKPOINT_PLAN = "{seed: 11, start: now, phases: [{shape: constant, rate: 200}]}"


def slow_files(folder: Path) -> SlowFiles:
    """The slow file system of a drill, whose files are in `folder/files`."""
    return SlowFiles(folder / "files")


def prepare_slow_checkpoint(injector: Injector) -> dict[str, Any]:
    return {"conf": dict(slow_files(injector.folder).conf)}


def query_on_slow_files(app: TargetApp, rows: DataFrame) -> None:
    """Starts a query whose checkpoint is on the slow file system."""
    files = slow_files(app.folder)
    files.install(app.spark)
    app.query(rows, location=files.location(app.checkpoint()))


def start_slow_checkpoint(app: TargetApp) -> None:
    """A filter: it has no state, so the checkpoint is only the log of its batches."""
    query_on_slow_files(app, app.rows(SLOW_CHECKPOINT_PLAN).where("amount > 100"))


def repair_slow_checkpoint(injector: Injector) -> None:
    slow_files(injector.folder).heal()


def effect_slow_checkpoint(bundle: Bundle) -> float | None:
    """The first batch that starts so late that the one before must have outlasted its interval.

    A file of the checkpoint is as old as its content, and the wait comes before and after that is written: so the time
    from one file to the next shows it, and the time within one batch does not.
    """
    for before, after in pairwise(bundle.commits()):
        if before.planned >= bundle.times["injected"] and after.planned - before.planned > 1.25 * TRIGGER_SECONDS:
            return before.planned + TRIGGER_SECONDS
    return None


SLOW_CHECKPOINT = Drill(
    name="slow-checkpoint",
    id="F18",
    summary="the checkpoint file system takes 0.6 s for each file created or renamed",
    prepare=prepare_slow_checkpoint,
    start=start_slow_checkpoint,
    inject=lambda injector: slow_files(injector.folder).slow(0.6),
    repair=repair_slow_checkpoint,
    effect=effect_slow_checkpoint,
    onset_seconds=60.0,  # the first batches take 20 s on a busy machine
    truth=cause("checkpoint-slow", remedy="checkpoint|storage|disk", may=LATE_SYMPTOMS),
)


# F18b, full checkpoint storage: for 30 s the driver cannot write to files, as with an exhausted quota.
#
# The limit is set between two batches, so the next offsets file is the first one that cannot be written. The query
# fails, is restarted, and fails again until there is space.
FULL_CHECKPOINT_PLAN = "{seed: 11, start: now, phases: [{shape: constant, rate: 200}]}"


def start_full_checkpoint(app: TargetApp) -> None:
    """A sink of Spark's own: of an exception in a Python function Spark passes on only the first line."""
    rows = app.rows(FULL_CHECKPOINT_PLAN).withWatermark("event_time", "10 seconds")
    once = rows.dropDuplicatesWithinWatermark(["transaction_id"])
    app.query(once, sink="noop", keep=True)


def inject_full_checkpoint(injector: Injector) -> None:
    log = BatchLog(injector.folder / "work" / "checkpoints" / "main")
    before = log.newest_committed
    injector.until(lambda: log.newest_committed != before, 30.0, "the end of a batch")
    _limit(injector, 0)


def _limit(injector: Injector, size: int | None) -> None:
    """The largest size of a file, in bytes, that the driver's JVM may write: beyond it a write fails."""
    found = injector.children("java")
    if not found:
        raise UserError(f"drill {injector.drill}: the driver has no JVM")
    for jvm in found:
        _, most = resource.prlimit(jvm.pid, resource.RLIMIT_FSIZE)
        resource.prlimit(jvm.pid, resource.RLIMIT_FSIZE, (most if size is None else size, most))


FULL_CHECKPOINT = Drill(
    name="full-checkpoint",
    id="F18b",
    summary="the checkpoint storage is full; the query fails and is restarted",
    start=start_full_checkpoint,
    inject=inject_full_checkpoint,
    repair=lambda injector: _limit(injector, None),
    effect=dies(),
    onset_seconds=60.0,  # the first batches take 20 s on a busy machine
    fault_seconds=30.0,
    truth=cause(
        "checkpoint-full",
        component=("query=checkpoint",),
        remedy="storage|room|quota",
        may=("query-failed", "crash-loop", "falling-behind", "freshness-breach"),
    ),
)


# F28, slow state commit: from the onset, the file system that holds the state takes 1.2 s for each file.
def start_slow_state_commit(app: TargetApp) -> None:
    rows = app.rows(SLOW_CHECKPOINT_PLAN).withWatermark("event_time", "10 seconds")
    query_on_slow_files(app, rows.dropDuplicatesWithinWatermark(["transaction_id"]))


SLOW_STATE_COMMIT = Drill(
    name="slow-state-commit",
    id="F28",
    summary="each state file takes 1.2 s to create or rename",
    prepare=prepare_slow_checkpoint,
    start=start_slow_state_commit,
    inject=lambda injector: slow_files(injector.folder).slow(1.2, within="/state/"),
    repair=repair_slow_checkpoint,
    effect=batches_outlast(2.0),
    truth=cause("state-commit-slow", component=("operator",), remedy="checkpoint|file system", may=LATE_SYMPTOMS),
    # each batch then saves whole files, which is all in its commit
    conf=(("spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled", "false"),),
)


# F26, stale snapshots: state store maintenance runs once an hour, so no snapshot is uploaded.
STALE_SECONDS = 180.0  # three times the default interval of maintenance
STALE_SNAPSHOTS_PLAN = "{seed: 11, start: now, phases: [{shape: constant, rate: 200}]}"


def effect_stale_snapshots(bundle: Bundle) -> float | None:
    """When the oldest change has waited for so long without a file of a snapshot; None if there is one."""
    commits = bundle.commits()
    if not commits or any(bundle.checkpoint().glob("state/*/*/**/*.zip")):
        return None
    at = commits[0].planned + STALE_SECONDS
    return at if at <= bundle.times["ended"] else None


STALE_SNAPSHOTS = Drill(
    name="stale-snapshots",
    id="F26",
    summary="no snapshot of the state is uploaded, because maintenance runs once an hour",
    start=lambda app: app.job("dedup_transactions", {"transactions": app.rows(STALE_SNAPSHOTS_PLAN)}),
    effect=effect_stale_snapshots,
    truth=cause("state-snapshot-lag", component=("operator",), remedy="maintenance"),
    onset_seconds=165.0,
    fault_seconds=45.0,
    recovery_seconds=0.0,
    recovers=False,
    conf=(("spark.sql.streaming.stateStore.maintenanceInterval", "3600s"),),
)


DRILLS = (SLOW_CHECKPOINT, FULL_CHECKPOINT, SLOW_STATE_COMMIT, STALE_SNAPSHOTS)
