"""H14, gap in the record: for 20 s nobody watches, and what is seen afterwards is as it was before."""

import ledgerops
from ledgerops.drills.harness.drill import Drill
from ledgerops.drills.harness.injector import Surgeon
from ledgerops.drills.harness.target_app import Patient

PLAN = """
seed: 114
start: now
phases: [{shape: constant, rate: 200}]
duplicates: {share: 0.01, within: 5s}
"""


def start(patient: Patient) -> None:
    watched = [True]

    def look() -> None:
        blind = bool(patient.chaos("blind"))
        if blind and watched[0]:
            patient.watch.close()
            watched[0] = False
        elif not blind and not watched[0]:
            patient.watch = ledgerops.attach(
                patient.spark, port=0, recording=str(patient.folder / "recording"), host_interval=2.0
            )
            watched[0] = True

    patient.job("dedup_transactions", {"transactions": patient.rows(PLAN)})
    patient.each_turn.append(look)


def inject(surgeon: Surgeon) -> None:
    surgeon.chaos.set(blind=True)


def repair(surgeon: Surgeon) -> None:
    surgeon.chaos.set(blind=None)


DRILL = Drill(
    name="gap",
    id="H14",
    kind="control",
    summary="20 s that nobody watched",
    start=start,
    inject=inject,
    repair=repair,
    fault_seconds=20.0,
    recovery_seconds=40.0,
)
