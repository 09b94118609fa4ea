"""F10, idle join input: of two streams joined within a minute, the second sends nothing from the onset."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from ledgerops.drills.harness.drill import Drill, cause
from ledgerops.drills.harness.effects import at_once
from ledgerops.drills.harness.target_app import TargetApp

TRANSACTIONS = """
seed: 40
start: now
partitions: {count: 2}
phases: [{shape: constant, rate: 150}]
"""
ACCOUNTS = """
seed: 41
start: now
partitions: {count: 2}
phases:
  - {shape: constant, rate: 40, duration: 45s}
  - {shape: constant, rate: 0, duration: 60s}
  - {shape: constant, rate: 40}
"""


def side(rows: DataFrame, name: str) -> DataFrame:
    """One input with names of its own, as a join needs them."""
    named = rows.select(F.col("event_time").alias(f"{name}_time"), F.col("account_id").alias(f"{name}_account"))
    return named.withWatermark(f"{name}_time", "10 seconds")


def start(app: TargetApp) -> None:
    bought = side(app.rows(TRANSACTIONS, label="transactions"), "bought")
    opened = side(app.rows(ACCOUNTS, label="accounts"), "opened")
    near = F.expr(
        "opened_account = bought_account AND opened_time BETWEEN bought_time - INTERVAL 1 MINUTE "
        "AND bought_time + INTERVAL 1 MINUTE"
    )
    app.query(bought.join(opened, near))


DRILL = Drill(
    name="idle-join-input",
    id="F10",
    summary="one of two joined streams stops sending and holds back the watermark",
    start=start,
    effect=at_once,
    fault_seconds=60.0,
    truth=cause(
        "watermark-stalled",
        component=("source=accounts",),
        remedy="silent|sends nothing",
        may=("state-growth", "freshness-breach"),
    ),
)
