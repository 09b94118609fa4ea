"""H14, gap in the recording: nothing is recorded for 20 s, and everything is the same afterwards."""

import ledgerops
from ledgerops.drills.harness.drill import Drill
from ledgerops.drills.harness.target_app import TargetApp

PLAN = """
seed: 114
start: now
phases: [{shape: constant, rate: 200}]
duplicates: {share: 0.01, within: 5s}
"""


def start(app: TargetApp) -> None:
    watched = [True]

    def turn() -> None:
        blind = bool(app.control("blind"))
        if blind and watched[0]:
            app.watch.close()
            watched[0] = False
        elif not blind and not watched[0]:
            app.watch = ledgerops.attach(app.spark, port=0, recording=str(app.folder / "recording"), host_interval=2.0)
            watched[0] = True

    app.job("dedup_transactions", {"transactions": app.rows(PLAN)})
    app.each_turn.append(turn)


DRILL = Drill(
    name="gap",
    id="H14",
    kind="control",
    summary="20 s without observations",
    start=start,
    control={"blind": True},
    fault_seconds=20.0,
    recovery_seconds=40.0,
)
