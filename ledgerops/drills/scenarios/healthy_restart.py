"""H2, planned restart: a query is stopped in order, is away for 25 s, and catches up when it is back."""

from pyspark.errors import PySparkException

from ledgerops.drills.harness.drill import Drill
from ledgerops.drills.harness.injector import Surgeon
from ledgerops.drills.harness.target_app import Patient

PLAN = """
seed: 102
start: now
phases: [{shape: constant, rate: 200}]
"""


def start(patient: Patient) -> None:
    def begin() -> None:
        patient.job("dedup_transactions", {"transactions": patient.rows(PLAN)})

    def look() -> None:
        query = patient.kept["main"].query
        if patient.chaos("away") and query.isActive:
            try:
                query.stop()
            except PySparkException:
                pass  # it takes longer than Spark waits; the next look asks again
        elif not patient.chaos("away") and not query.isActive:
            begin()

    begin()
    patient.each_turn.append(look)


def inject(surgeon: Surgeon) -> None:
    surgeon.chaos.set(away=True)


def repair(surgeon: Surgeon) -> None:
    surgeon.chaos.set(away=None)


DRILL = Drill(
    name="restart",
    id="H2",
    kind="control",
    summary="a planned stop of 25 s, and the way back",
    start=start,
    inject=inject,
    repair=repair,
    fault_seconds=25.0,
    recovery_seconds=50.0,
)
