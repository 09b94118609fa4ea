"""F28, slow state commit: from the onset, the file system that holds the state takes 1.2 s for each file."""

from __future__ import annotations

from ledgerops.drills.harness.drill import LATE_SYMPTOMS, Drill, cause
from ledgerops.drills.harness.effects import batches_outlast
from ledgerops.drills.harness.target_app import TargetApp
from ledgerops.drills.scenarios.slow_checkpoint import PLAN, files, prepare, query, repair


def start(app: TargetApp) -> None:
    rows = app.rows(PLAN).withWatermark("event_time", "10 seconds")
    query(app, rows.dropDuplicatesWithinWatermark(["transaction_id"]))


DRILL = Drill(
    name="slow-state-commit",
    id="F28",
    summary="each state file takes 1.2 s to create or rename",
    prepare=prepare,
    start=start,
    inject=lambda injector: files(injector.folder).slow(1.2, within="/state/"),
    repair=repair,
    effect=batches_outlast(2.0),
    truth=cause("state-commit-slow", component=("operator",), remedy="checkpoint|file system", may=LATE_SYMPTOMS),
    # each batch then saves whole files, which is all in its commit
    conf=(("spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled", "false"),),
)
