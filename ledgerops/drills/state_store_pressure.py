"""F12, state store pressure: from the onset large values for many keys of a long window fill a small heap."""

from __future__ import annotations

from ledgerops.drills.drill import FAULT, Drill, Fault, Truth
from ledgerops.drills.effects import batches_outlast
from ledgerops.drills.newkeys import with_key
from ledgerops.drills.patient import Patient

VALUE = 12_000  # characters that each key keeps
PLAN = """
seed: 11
start: now
phases: [{shape: constant, rate: 600}]
keys: {customers: 300, accounts: 300}
"""


def start(patient: Patient) -> None:
    from pyspark.sql import functions as F

    rows = with_key(patient, patient.rows(PLAN), FAULT).withWatermark("event_time", "2 seconds")
    kept = F.rpad("transaction_id", VALUE, "x")
    windows = rows.groupBy(F.window("event_time", "1 day"), "key")
    patient.query(windows.agg(F.count("*").alias("count"), F.first(kept).alias("first")), mode="update")


DRILL = Drill(
    name="state-store-pressure",
    id="F12",
    kind="fault",
    summary="large values for many keys on a small heap",
    start=start,
    effect=batches_outlast(2.0),
    truth=Truth(
        faults=(Fault(rules=("gc-pressure",), component=("executor",), remedy="RocksDB"),),
        may=(
            "state-growth",
            "state-commit-slow",
            "trigger-overrun",
            "falling-behind",
            "freshness-breach",
            "cpu-saturated",
        ),
    ),
    recovers=False,
    recovery_seconds=20.0,
    conf=(
        ("spark.driver.memory", "480m"),
        (
            "spark.sql.streaming.stateStore.providerClass",
            "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider",
        ),
    ),
)
