"""F14, crash loop: a function raises on one row, and a supervisor restarts the query each time."""

from collections.abc import Callable, Iterator

import pandas as pd
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from ledgerops.drills.harness.drill import Drill, cause
from ledgerops.drills.harness.effects import dies
from ledgerops.drills.harness.fault_control import FaultControl
from ledgerops.drills.harness.target_app import TargetApp
from ledgerops.drills.scenarios.crash import PLAN, POISON

LOOP = 3  # deaths


def scored(control: FaultControl) -> Callable[[Iterator[pd.DataFrame]], Iterator[pd.DataFrame]]:
    """Passes rows on, and raises on the bad row until the control file says to skip it."""

    def score(batches: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        for rows in batches:
            bad = rows[rows["poison"]]
            if len(bad) and not control("skip"):
                raise ValueError(f"no score for transaction {bad['transaction_id'].iloc[0]}")
            yield rows

    return score


def start(app: TargetApp) -> None:
    rows: DataFrame = app.rows(PLAN).select("transaction_id", F.expr(POISON).alias("poison"))
    app.query(rows.mapInPandas(scored(app.control), "transaction_id string, poison boolean"), keep=True)


DRILL = Drill(
    name="crash-loop",
    id="F14b",
    summary="a function raises on one row, and the query is restarted each time",
    start=start,
    repair=lambda injector: injector.control.set(skip=True),
    effect=dies(times=LOOP),
    fault_seconds=40.0,
    truth=cause(
        "crash-loop", component=("query",), remedy="dead-letter|restarts", may=("query-failed", "freshness-breach")
    ),
)
