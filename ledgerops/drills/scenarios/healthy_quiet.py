"""H3, H4, H10, H13: queries with little to do, all of them healthy.

`idle`: its load ends after 20 s, and there is nothing left to read. `long`: a batch every 25 s, with the lag that
this implies. `once`: processes a minute of rows with the AvailableNow trigger, and ends. `fresh`: starts halfway
through, without any history.
"""

import time

from ledgerops.drills.harness.drill import Drill
from ledgerops.drills.harness.target_app import TargetApp

ENDING = """
seed: 103
start: now
phases: [{shape: constant, rate: 100, duration: 20s}, {shape: constant, rate: 0}]
"""
STEADY = "{seed: 104, start: now, phases: [{shape: constant, rate: 100}]}"
ONCE, FRESH = 20.0, 60.0  # seconds after the origin at which these start


def start(app: TargetApp) -> None:
    app.job("dedup_transactions", {"transactions": app.rows(ENDING)}, role="idle")
    app.job("sliding_counts", {"transactions": app.rows(STEADY)}, role="long", trigger=25.0)
    waiting = {"once": ONCE, "fresh": FRESH}

    def turn() -> None:
        for role, seconds in list(waiting.items()):
            now = time.time()
            if now < app.origin + seconds:
                continue
            del waiting[role]
            if role == "once":
                rows = app.rows(STEADY, origin=now - 60.0)
                app.job("large_credits", {"transactions": rows}, role=role, available_now=True)
            else:
                rows = app.rows(STEADY, origin=now)
                app.job("daily_counts", {"transactions": rows}, role=role)

    app.each_turn.append(turn)


DRILL = Drill(
    name="quiet",
    id="H3 H4 H10 H13",
    kind="control",
    summary="an idle source, a long trigger, a new query, and one that ends by itself",
    start=start,
    roles=("idle", "long", "once", "fresh"),
    fault_seconds=60.0,
)
