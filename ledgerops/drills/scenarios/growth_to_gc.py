"""X4, growth leads to GC: a count by key that grows with each row fills the heap, and GC makes batches slow."""

from __future__ import annotations

from ledgerops.drills.harness.drill import LATE_SYMPTOMS, Drill, cause
from ledgerops.drills.harness.effects import batches_outlast
from ledgerops.drills.harness.new_keys import with_key
from ledgerops.drills.harness.target_app import TargetApp
from ledgerops.drills.scenarios.state_store_pressure import SMALL_HEAP

SECONDS = 74.0  # of new keys
FULL = 16.0  # seconds after them in which the heap stays as full as it is; a twentieth more would not fit into it
VALUE = 12_400  # characters that each key keeps
PLAN = """
seed: 11
start: now
phases: [{shape: constant, rate: 400}]
keys: {customers: 300, accounts: 300}
"""


def start(app: TargetApp) -> None:
    from pyspark.sql import functions as F

    rows = with_key(app, app.rows(PLAN), SECONDS)
    kept = F.rpad("transaction_id", VALUE, "x")
    app.query(rows.groupBy("key").agg(F.count("*").alias("count"), F.first(kept).alias("first")), mode="update")


DRILL = Drill(
    name="growth-to-gc",
    id="X4",
    kind="combined",
    summary="state that grows with each row fills the heap, and GC makes batches slow",
    start=start,
    effect=batches_outlast(1.5, times=3),
    truth=cause(
        "unbounded-state",
        "state-growth",
        component=("operator",),
        remedy="watermark|time to live",
        may=(*LATE_SYMPTOMS, "unbounded-state", "state-growth", "gc-pressure", "cpu-saturated"),
    ),
    fault_seconds=SECONDS + FULL,
    recovers=False,
    recovery_seconds=15.0,
    conf=SMALL_HEAP,
)
