"""H2, planned restart: a query is stopped gracefully, is down for 25 s, and catches up afterwards."""

from pyspark.errors import PySparkException

from ledgerops.drills.harness.drill import Drill
from ledgerops.drills.harness.target_app import TargetApp

PLAN = "{seed: 102, start: now, phases: [{shape: constant, rate: 200}]}"


def start(app: TargetApp) -> None:
    def begin() -> None:
        app.job("dedup_transactions", {"transactions": app.rows(PLAN)})

    def turn() -> None:
        query = app.kept["main"].query
        if app.control("away") and query.isActive:
            try:
                query.stop()
            except PySparkException:
                pass  # it takes longer than Spark waits; the next turn asks again
        elif not app.control("away") and not query.isActive:
            begin()

    begin()
    app.each_turn.append(turn)


DRILL = Drill(
    name="restart",
    id="H2",
    kind="control",
    summary="a planned stop of 25 s and the catch-up",
    start=start,
    control={"away": True},
    fault_seconds=25.0,
    recovery_seconds=50.0,
)
