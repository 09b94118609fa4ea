"""F08, late flood: from the onset, a fifth of the rows arrive two to ten minutes after their event time.

The watermark delay of a deduplication and of windows of ten seconds is one minute.
"""

from pyspark.sql import functions as F

from ledgerops.drills.harness.drill import Drill, Fault, Truth
from ledgerops.drills.harness.effects import at_once
from ledgerops.drills.harness.target_app import TargetApp

PLAN = """
seed: 38
start: now
partitions: {count: 2}
phases: [{shape: constant, rate: 200}]
disorder: {late: {share: 0.01, delay: uniform, low: 1s, high: 10s}}
duplicates: {share: 0.01, within: 5s}
changes:
  - from: 45s
    to: 90s
    disorder: {late: {share: 0.2, delay: uniform, low: 2m, high: 10m}}
"""


def start(app: TargetApp) -> None:
    app.job("dedup_transactions", {"transactions": app.rows(PLAN)})
    counts = (
        app.rows(PLAN)
        .withWatermark("event_time", "1 minute")
        .groupBy(F.window("event_time", "10 seconds"), "type")
        .agg(F.count("*").alias("transactions"), F.sum("amount").alias("amount"))
    )
    app.query(counts, role="counts")


DRILL = Drill(
    name="late-flood",
    id="F08",
    summary="a fifth of the rows arrive minutes after their event time",
    start=start,
    effect=at_once,
    recovery_seconds=45.0,
    roles=("main", "counts"),
    truth=Truth(
        faults=(
            Fault(rules=("late-data",), component=("operator=dedupe",), remedy="late"),
            Fault(rules=("late-data",), query="counts", component=("operator=stateStoreSave",), remedy="late"),
        ),
        may=("rows-dropped",),
    ),
)
