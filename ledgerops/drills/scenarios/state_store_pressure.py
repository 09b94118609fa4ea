"""F12, state store pressure: from the onset, a long window receives very many keys on a small heap."""

from __future__ import annotations

from ledgerops.drills.harness.drill import LATE_SYMPTOMS, ONSET_SECONDS, Drill, cause
from ledgerops.drills.harness.effects import batches_outlast
from ledgerops.drills.harness.target_app import TargetApp

COPIES = 26  # keys that each row brings
LASTS = 52.0  # seconds, in which they are 810,000: more than half of the heap, and no more, so that it holds out
SMALL_HEAP = (
    ("spark.driver.memory", "480m"),
    (
        "spark.sql.streaming.stateStore.providerClass",
        "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider",
    ),
)
PLAN = """
seed: 11
start: now
phases: [{shape: constant, rate: 600}]
keys: {customers: 300, accounts: 300}
"""


def start(app: TargetApp) -> None:
    from pyspark.sql import functions as F

    came = F.col("event_time").cast("double") - app.origin
    many = F.sequence(F.lit(1), F.lit(COPIES))
    copies = F.when(came.between(ONSET_SECONDS, ONSET_SECONDS + LASTS), many).otherwise(F.array(F.lit(0)))
    rows = app.rows(PLAN).withWatermark("event_time", "2 seconds").withColumn("copy", F.explode(copies))
    key = F.when(F.col("copy") > 0, F.col("transaction_id")).otherwise(F.col("account_id"))
    windows = rows.withColumn("key", key).groupBy(F.window("event_time", "1 day"), "key", "copy")
    app.query(windows.agg(F.count("*").alias("count"), F.sum("amount").alias("sum")), mode="update")


DRILL = Drill(
    name="state-store-pressure",
    id="F12",
    summary="very many keys of a long window on a small heap",
    start=start,
    effect=batches_outlast(2.0, times=3),
    truth=cause(
        "gc-pressure",
        component=("executor",),
        remedy="RocksDB",
        may=(*LATE_SYMPTOMS, "state-growth", "state-commit-slow", "cpu-saturated"),
    ),
    fault_seconds=LASTS,
    recovers=False,
    recovery_seconds=10.0,
    conf=SMALL_HEAP,
)
