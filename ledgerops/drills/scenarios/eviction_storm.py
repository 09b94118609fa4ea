"""F25, eviction storm: a window with very many keys closes, and one batch has to remove them all."""

from __future__ import annotations

from ledgerops.drills.harness.drill import LATE_SYMPTOMS, Drill, cause
from ledgerops.drills.harness.effects import batches_outlast
from ledgerops.drills.harness.target_app import TargetApp

WINDOW = 45  # seconds
PLAN = f"""
seed: 11
start: now
phases:
  - {{shape: constant, rate: 36000, duration: {WINDOW}s}}
  - {{shape: constant, rate: 200}}
"""


def start(app: TargetApp) -> None:
    from pyspark.sql import functions as F

    since = round(app.origin * 1000) % (WINDOW * 1000)  # windows begin with the drill
    window = F.window("event_time", f"{WINDOW} seconds", startTime=f"{since} milliseconds")
    rows = app.rows(PLAN).withWatermark("event_time", "2 seconds")
    pad = F.repeat(F.col("transaction_id"), 10)
    app.query(rows.groupBy(window, "transaction_id").agg(F.count("*").alias("count"), F.first(pad).alias("pad")))


DRILL = Drill(
    name="eviction-storm",
    id="F25",
    summary="a window with very many keys closes, and one batch removes them all",
    start=start,
    effect=batches_outlast(4.0),  # twice the interval: a spike below that hurts nobody
    truth=cause("eviction-storm", component=("operator",), remedy="spread", may=LATE_SYMPTOMS),
    fault_seconds=25.0,
    conf=(("spark.driver.memory", "2g"),),
    heavy=True,
)
