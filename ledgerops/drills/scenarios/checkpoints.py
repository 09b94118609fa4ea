"""Checkpoint storage that is slow or full, and state that is saved too slowly or too rarely."""

import resource
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise

from pyspark.sql import DataFrame

from ledgerops.checkpoint.batch_log import BatchLog
from ledgerops.drills.harness.bundle import Bundle
from ledgerops.drills.harness.case import LATE_SYMPTOMS, Break, scripted, steady
from ledgerops.drills.harness.effects import batches_outlast, fails
from ledgerops.drills.harness.injector import Injector
from ledgerops.drills.harness.slowfs import SlowFiles
from ledgerops.drills.harness.target_app import TRIGGER_SECONDS, TargetApp
from ledgerops.errors import UserError

PLAN = steady(11, 200)
SLOW_FILES = "files"  # folder of the slow file system


def prepare_slow_files(injector: Injector) -> None:
    injector.conf |= SlowFiles(injector.folder / SLOW_FILES).conf


def query_on_slow_files(app: TargetApp, rows: DataFrame) -> None:
    """Starts a query whose checkpoint is on the slow file system."""
    files = SlowFiles(app.folder / SLOW_FILES)
    files.install(app.spark)
    app.query(rows, location=files.location(app.checkpoint()))


def slow_files(seconds: float, within: str = "") -> Break:
    """Each file with this in its path takes so long to create or rename."""

    @contextmanager
    def slow(injector: Injector) -> Iterator[None]:
        files = SlowFiles(injector.folder / SLOW_FILES)
        files.slow(seconds, within)
        yield
        files.heal()

    return slow


def next_batch_late(bundle: Bundle) -> float | None:
    """The first batch that starts so late that the one before must have outlasted its interval.

    A file of the checkpoint is as old as its content, and the wait comes before and after that is written: so the time
    from one file to the next shows it, and the time within one batch does not.
    """
    for before, after in pairwise(bundle.commits()):
        if before.planned >= bundle.times["injected"] and after.planned - before.planned > 1.25 * TRIGGER_SECONDS:
            return before.planned + TRIGGER_SECONDS
    return None


def start_full_checkpoint(app: TargetApp) -> None:
    """A sink of Spark's own: of an exception in a Python function Spark passes on only the first line."""
    app.query(unique(app), sink="noop", keep=True)


def unique(app: TargetApp) -> DataFrame:
    """A deduplication, whose state is in the checkpoint."""
    rows = app.rows(PLAN).withWatermark("event_time", "10 seconds")
    return rows.dropDuplicatesWithinWatermark(["transaction_id"])


@contextmanager
def full_checkpoint(injector: Injector) -> Iterator[None]:
    """The driver cannot write to files, as with an exhausted quota. The limit is set between two batches, so the next
    offsets file is the first one that cannot be written."""
    log = BatchLog(injector.folder / "checkpoints" / "main")
    before = log.newest_committed
    injector.until(lambda: log.newest_committed != before, 30.0, "the end of a batch")
    _limit(injector, 0)
    yield
    _limit(injector, None)


def _limit(injector: Injector, size: int | None) -> None:
    """The largest size of a file, in bytes, that the driver's JVM may write: beyond it a write fails."""
    found = injector.children("java")
    if not found:
        raise UserError(f"drill {injector.drill}: the driver has no JVM")
    for jvm in found:
        _, most = resource.prlimit(jvm.pid, resource.RLIMIT_FSIZE)
        resource.prlimit(jvm.pid, resource.RLIMIT_FSIZE, (most if size is None else size, most))


STALE_SECONDS = 180.0  # three times the default interval of maintenance


def no_snapshot(bundle: Bundle) -> float | None:
    """When the oldest change has waited for so long without a file of a snapshot; None if there is one."""
    commits = bundle.commits()
    if not commits or any(bundle.checkpoint().glob("state/*/*/**/*.zip")):
        return None
    at = commits[0].planned + STALE_SECONDS
    return at if at <= bundle.times["ended"] else None


DRILLS = (
    # a filter: it has no state, so the checkpoint is only the log of its batches
    scripted(
        name="slow-checkpoint", id="F18",
        text="the checkpoint file system takes 0.6 s for each file created or renamed",
        prepare=prepare_slow_files, start=lambda app: query_on_slow_files(app, app.rows(PLAN).where("amount > 100")),
        breaks=slow_files(0.6), effect=next_batch_late,
        onset_seconds=60.0, seconds=135.0,  # the first batches take 20 s on a busy machine
        expected=("checkpoint-slow",), remedy="checkpoint|storage|disk", may=LATE_SYMPTOMS,
    ),
    # the query is restarted, and fails again until there is space
    scripted(
        name="full-checkpoint", id="F18b", text="the checkpoint storage is full; the query fails and is restarted",
        start=start_full_checkpoint, breaks=full_checkpoint, effect=fails(),
        onset_seconds=60.0, fault_seconds=30.0,  # the first batches take 20 s on a busy machine
        expected=("checkpoint-full",), component=("query=checkpoint",), remedy="ulimit",
        may=("query-failed", "crash-loop", "falling-behind", "freshness-breach"),
    ),
    scripted(
        name="slow-state-commit", id="F28", text="each state file takes 1.2 s to create or rename",
        prepare=prepare_slow_files, start=lambda app: query_on_slow_files(app, unique(app)),
        breaks=slow_files(1.2, within="/state/"), effect=batches_outlast(2.0),
        expected=("state-commit-slow",), component=("operator",), remedy="checkpoint|file system", may=LATE_SYMPTOMS,
        # each batch then saves whole files, which is all in its commit
        conf={"spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "false"},
    ),
    scripted(
        name="stale-snapshots", id="F26",
        text="no snapshot of the state is uploaded, because maintenance runs once an hour",
        start=lambda app: app.job("dedup_transactions", PLAN), effect=no_snapshot,
        expected=("state-snapshot-lag",), component=("operator",), remedy="maintenance",
        onset_seconds=165.0, seconds=210.0, recovers=False,
        conf={"spark.sql.streaming.stateStore.maintenanceInterval": "3600s"},
    ),
)  # fmt: skip
