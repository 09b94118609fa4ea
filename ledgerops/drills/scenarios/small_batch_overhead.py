"""Small batch overhead: a query whose planning takes 2 s is deployed with a trigger of 0.2 s instead of 10 s.

Its few rows take no time. The cost is a constant that the Spark optimizer folds again for each batch.
"""

from __future__ import annotations

import time
from math import sqrt
from typing import TYPE_CHECKING

from ledgerops.drills.harness.drill import Drill, cause
from ledgerops.drills.harness.effects import batches_outlast
from ledgerops.drills.harness.target_app import TargetApp

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PLAN = "{seed: 241, start: now, phases: [{shape: constant, rate: 5}]}"
PLANNING = 2.0  # seconds
LONG, SHORT = 10.0, 0.2  # seconds between triggers


def constant(spark: SparkSession) -> str:
    """A constant expression that takes PLANNING seconds to fold on this machine: its cost is quadratic."""
    length, times = 3000, []
    for _ in range(6):  # the first ones are warm-up, and others may have taken the cores
        began = time.monotonic()
        spark.sql(f"SELECT {_distance(length)}").collect()
        times.append(time.monotonic() - began)
    return _distance(round(length * sqrt(PLANNING / min(times))))


def _distance(length: int) -> str:
    return f"levenshtein(repeat('a', {length}), repeat('b', {length}))"


def start(app: TargetApp) -> None:
    from pyspark.sql import functions as F

    rows = app.rows(PLAN).withColumn("folded", F.expr(constant(app.spark)))
    app.query(rows, trigger=LONG)
    deployed = [LONG]

    def deploy() -> None:
        wanted = SHORT if app.control("short") else LONG
        if deployed[-1] != wanted:
            deployed.append(wanted)
            app.kept["main"].query.stop()
            app.query(rows, trigger=wanted)

    app.each_turn.append(deploy)


DRILL = Drill(
    name="small-batch-overhead",
    id="P05",
    summary="a query whose planning takes 2 s is deployed with a trigger of 0.2 s",
    start=start,
    control={"short": True},
    effect=batches_outlast(SHORT + 1.0),
    fault_seconds=50.0,
    recovery_seconds=40.0,
    truth=cause(
        "small-batch-overhead",
        component=("query=planning",),
        remedy="interval",
        may=("trigger-overrun", "freshness-breach"),
    ),
)
