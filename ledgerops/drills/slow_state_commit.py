"""F24, slow state commit: from the onset the part of the file system that holds the state takes 1.2 s for each file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ledgerops.drills.drill import Drill, Fault, Truth
from ledgerops.drills.effects import batches_outlast
from ledgerops.drills.patient import TRIGGER, Patient
from ledgerops.drills.slowfs import SlowFiles
from ledgerops.drills.surgeon import Surgeon

if TYPE_CHECKING:
    from pyspark.sql.streaming import StreamingQuery

PLAN = """
seed: 11
start: now
phases: [{shape: constant, rate: 200}]
"""


def files(folder: Any) -> SlowFiles:
    return SlowFiles(folder / "files")


def prepare(surgeon: Surgeon) -> dict[str, Any]:
    return {"conf": dict(files(surgeon.folder).conf)}


def start(patient: Patient) -> None:
    slow = files(patient.folder)
    slow.install(patient.spark)
    rows = patient.rows(PLAN).withWatermark("event_time", "10 seconds")
    rows = rows.dropDuplicatesWithinWatermark(["transaction_id"])
    sink = patient.sink()

    def begin() -> StreamingQuery:
        return (
            rows.writeStream.foreachBatch(sink.write_batch)
            .queryName(patient.names["main"])
            .option("checkpointLocation", slow.location(patient.checkpoint()))
            .trigger(processingTime=f"{TRIGGER:g} seconds")
            .start()
        )

    patient.run("main", begin)


def inject(surgeon: Surgeon) -> None:
    files(surgeon.folder).slow(1.2, within="/state/")


def repair(surgeon: Surgeon) -> None:
    files(surgeon.folder).heal()


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
        may=("trigger-overrun", "falling-behind", "freshness-breach"),
    ),
    # each batch then saves whole files, which is all in its commit
    conf=(("spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled", "false"),),
)
