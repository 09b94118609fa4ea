"""F28, slow state commit: from the onset the part of the file system that holds the state takes 1.2 s for each file."""

from __future__ import annotations

from ledgerops.drills.harness.drill import LATE, Drill, Fault, Truth
from ledgerops.drills.harness.effects import batches_outlast
from ledgerops.drills.harness.injector import Surgeon
from ledgerops.drills.harness.target_app import Patient
from ledgerops.drills.scenarios.slow_checkpoint import PLAN, files, prepare, query, repair


def start(patient: Patient) -> None:
    rows = patient.rows(PLAN).withWatermark("event_time", "10 seconds")
    query(patient, rows.dropDuplicatesWithinWatermark(["transaction_id"]))


def inject(surgeon: Surgeon) -> None:
    files(surgeon.folder).slow(1.2, within="/state/")


DRILL = Drill(
    name="slow-state-commit",
    id="F28",
    kind="fault",
    summary="the files of the state take 1.2 s each to make or rename",
    prepare=prepare,
    start=start,
    inject=inject,
    repair=repair,
    effect=batches_outlast(2.0),
    truth=Truth(
        faults=(Fault(rules=("state-commit-slow",), component=("operator",), remedy="checkpoint|file system"),),
        may=LATE,
    ),
    # each batch then saves whole files, which is all in its commit
    conf=(("spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled", "false"),),
)
