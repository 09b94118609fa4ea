"""F27, RocksDB stall: from the onset the values of the state are so large that its small write buffers overflow."""

from __future__ import annotations

import os

from ledgerops.drills.drill import Drill, Fault, Truth
from ledgerops.drills.effects import batches_outlast
from ledgerops.drills.patient import Patient
from ledgerops.drills.surgeon import Surgeon

PLAN = """
seed: 11
start: now
phases: [{shape: constant, rate: 800}]
"""


def start(patient: Patient) -> None:
    from pyspark.sql import functions as F

    chaos = patient.chaos

    def noise(key: str) -> bytes:
        return os.urandom(int(chaos("size", 100)))  # nothing that could be compressed

    rows = patient.rows(PLAN).withColumn("noise", F.udf(noise, "binary").asNondeterministic()("account_id"))
    counts = rows.groupBy("account_id").agg(F.count("*").alias("count"), F.last("noise").alias("noise"))
    patient.query(counts, mode="update")


def inject(surgeon: Surgeon) -> None:
    surgeon.chaos.set(size=30_000)


def repair(surgeon: Surgeon) -> None:
    surgeon.chaos.set(size=None)


DRILL = Drill(
    name="rocksdb-stall",
    id="F27",
    kind="fault",
    summary="large values overflow the small write buffers of RocksDB",
    start=start,
    inject=inject,
    repair=repair,
    effect=batches_outlast(2.0),
    truth=Truth(
        faults=(Fault(rules=("rocksdb-stall",), component=("operator",), remedy="write buffers|SSD"),),
        may=("trigger-overrun", "falling-behind", "freshness-breach"),
    ),
    conf=(
        ("spark.sql.streaming.stateStore.rocksdb.writeBufferSizeMB", "1"),
        ("spark.sql.streaming.stateStore.rocksdb.maxWriteBufferNumber", "2"),
    ),
)
