"""H3, H4, H10, H13: queries that have little to do, and none of them anything wrong.

`idle`: its load ends after 20 s, and from then on there is nothing to read. `long`: a batch every 25 s, with the lag
that this means. `once`: works off a minute of rows under the trigger AvailableNow, and ends. `fresh`: starts in the
middle of it all, without any past to compare with.
"""

import time

from ledgerops.drills.harness.drill import Drill
from ledgerops.drills.harness.target_app import Patient

ENDING = """
seed: 103
start: now
phases: [{shape: constant, rate: 100, duration: 20s}, {shape: constant, rate: 0}]
"""
STEADY = """
seed: 104
start: now
phases: [{shape: constant, rate: 100}]
"""
ONCE, FRESH = 20.0, 60.0  # seconds after the origin at which these start


def start(patient: Patient) -> None:
    patient.job("dedup_transactions", {"transactions": patient.rows(ENDING)}, role="idle")
    patient.job("sliding_counts", {"transactions": patient.rows(STEADY)}, role="long", trigger=25.0)
    waiting = {"once": ONCE, "fresh": FRESH}

    def look() -> None:
        for role, seconds in list(waiting.items()):
            now = time.time()
            if now < patient.origin + seconds:
                continue
            del waiting[role]
            if role == "once":
                rows = patient.rows(STEADY, origin=now - 60.0)
                patient.job("large_credits", {"transactions": rows}, role=role, available_now=True)
            else:
                rows = patient.rows(STEADY, origin=now)
                patient.job("daily_counts", {"transactions": rows}, role=role)

    patient.each_turn.append(look)


DRILL = Drill(
    name="quiet",
    id="H3 H4 H10 H13",
    kind="control",
    summary="an idle source, a long trigger, a new query, and one that ends by itself",
    start=start,
    roles=("idle", "long", "once", "fresh"),
    fault_seconds=60.0,
)
