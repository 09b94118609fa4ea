"""Small batch overhead: a query with a large plan is deployed with a trigger of 0.2 s instead of 10 s.

Its few rows take no time; planning some hundred columns does, at each batch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ledgerops.drills.drill import Drill, Fault, Truth
from ledgerops.drills.effects import batches_outlast
from ledgerops.drills.patient import Patient
from ledgerops.drills.surgeon import Surgeon

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

PLAN = """
seed: 241
start: now
phases: [{shape: constant, rate: 5}]
"""
COLUMNS = 600
LONG, SHORT = 10.0, 0.2  # seconds between triggers


def wide(rows: DataFrame) -> DataFrame:
    """Many columns, none of which costs time to compute."""
    from pyspark.sql import functions as F

    made = [F.concat_ws("-", F.col("customer_id"), F.lit(str(i)), F.upper("operation")) for i in range(COLUMNS)]
    return rows.select("*", *(each.alias(f"c{i}") for i, each in enumerate(made)))


def start(patient: Patient) -> None:
    rows = wide(patient.rows(PLAN))
    patient.query(rows, trigger=LONG)
    deployed = [LONG]

    def deploy() -> None:
        wanted = SHORT if patient.chaos("short") else LONG
        if deployed[-1] != wanted:
            deployed.append(wanted)
            patient.kept["main"].query.stop()
            patient.query(rows, trigger=wanted)

    patient.each_turn.append(deploy)


def inject(surgeon: Surgeon) -> None:
    surgeon.chaos.set(short=True)


def repair(surgeon: Surgeon) -> None:
    surgeon.chaos.set(short=None)


DRILL = Drill(
    name="small-batch-overhead",
    id="P05",
    kind="fault",
    summary="a query with a large plan is deployed with a trigger of 0.2 s",
    start=start,
    inject=inject,
    repair=repair,
    effect=batches_outlast(SHORT + 1.0),
    fault_seconds=50.0,
    recovery_seconds=40.0,
    truth=Truth(
        faults=(Fault(rules=("small-batch-overhead",), component=("query=planning",), remedy="interval"),),
        may=("trigger-overrun", "freshness-breach"),
    ),
)
