"""F14, crash loop: a function raises at one row, and whoever started the query starts it again each time."""

from collections.abc import Callable, Iterator

import pandas as pd
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from ledgerops.drills.harness.drill import Drill, Fault, Truth
from ledgerops.drills.harness.effects import dies
from ledgerops.drills.harness.fault_control import Chaos
from ledgerops.drills.harness.injector import Surgeon
from ledgerops.drills.harness.target_app import Patient
from ledgerops.drills.scenarios.crash import PLAN, POISON

LOOP = 3  # deaths


def scored(chaos: Chaos) -> Callable[[Iterator[pd.DataFrame]], Iterator[pd.DataFrame]]:
    """Passes rows on; raises at the poison, until it is told to skip it."""

    def score(batches: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        for rows in batches:
            bad = rows[rows["poison"]]
            if len(bad) and not chaos("skip"):
                raise ValueError(f"no score for transaction {bad['transaction_id'].iloc[0]}")
            yield rows

    return score


def start(patient: Patient) -> None:
    rows: DataFrame = patient.rows(PLAN).select("transaction_id", F.expr(POISON).alias("poison"))
    patient.query(rows.mapInPandas(scored(patient.chaos), "transaction_id string, poison boolean"), keep=True)


def repair(surgeon: Surgeon) -> None:
    surgeon.chaos.set(skip=True)


DRILL = Drill(
    name="crash-loop",
    id="F14b",
    kind="fault",
    summary="a function raises at one row, and the query is started again each time",
    start=start,
    repair=repair,
    effect=dies(times=LOOP),
    fault_seconds=40.0,
    truth=Truth(
        faults=(Fault(rules=("crash-loop",), component=("query",), remedy="dead-letter|restarts"),),
        may=("query-failed", "freshness-breach"),
    ),
)
