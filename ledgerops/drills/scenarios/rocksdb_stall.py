"""F27, RocksDB stall: from the onset, the values of the state overflow its small write buffers."""

from __future__ import annotations

from ledgerops.drills.harness.drill import FAULT_SECONDS, LATE_SYMPTOMS, ONSET_SECONDS, Drill, cause
from ledgerops.drills.harness.effects import batches_outlast
from ledgerops.drills.harness.target_app import TargetApp

LARGE = 40_000  # bytes that each key keeps
PLAN = "{seed: 11, start: now, phases: [{shape: constant, rate: 800}]}"


def start(app: TargetApp) -> None:
    from pyspark.sql import functions as F

    came = F.col("event_time").cast("double") - app.origin
    large = came.between(ONSET_SECONDS, ONSET_SECONDS + FAULT_SECONDS)
    # encrypted, since what can be compressed fills no buffer
    noise = F.aes_encrypt(F.rpad("transaction_id", LARGE, "x").cast("binary"), F.lit("0000111122223333"))
    rows = app.rows(PLAN).withColumn("noise", F.when(large, noise))
    counts = rows.groupBy("account_id").agg(F.count("*").alias("count"), F.last("noise").alias("noise"))
    app.query(counts, mode="update")


DRILL = Drill(
    name="rocksdb-stall",
    id="F27",
    summary="large values overflow the small write buffers of RocksDB",
    start=start,
    effect=batches_outlast(2.0),
    truth=cause(
        "rocksdb-stall", component=("operator",), remedy="write buffers|SSD", may=(*LATE_SYMPTOMS, "state-commit-slow")
    ),
    conf=(
        ("spark.sql.streaming.stateStore.rocksdb.writeBufferSizeMB", "1"),
        ("spark.sql.streaming.stateStore.rocksdb.maxWriteBufferNumber", "2"),
    ),
)
