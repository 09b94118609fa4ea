"""H9, H12, H15, F22: something changes, and nothing goes wrong.

`bounded`: its state grows to a plateau until the first rows expire. `scaled`: two partitions are added, and an idle
one becomes busy. `stepped`: the producers' clock is set back by two seconds. `starved`: the producers send a fifth of
the planned rows, so the query has less to do.
"""

from ledgerops.drills.harness.drill import Drill
from ledgerops.drills.harness.target_app import TargetApp

STEADY = "{seed: 109, start: now, phases: [{shape: constant, rate: 200}]}"
SCALED = """
seed: 112
start: now
phases: [{shape: constant, rate: 200}]
partitions: {count: 3, idle: [2]}
changes: [{from: 45s, partitions: {count: 5}}]
"""
STEPPED = """
seed: 115
start: now
phases: [{shape: constant, rate: 200}]
changes: [{from: 45s, disorder: {late: {share: 1, delay: fixed, low: 2s}}}]
"""
STARVED = """
seed: 122
start: now
phases: [{shape: constant, rate: 200, duration: 45s}, {shape: constant, rate: 40}]
"""
TRIGGER = 4.0  # seconds: four queries share two cores


def start(app: TargetApp) -> None:
    def dedup(role: str, plan: str, lateness: str | None = None) -> None:
        rows = {"transactions": app.rows(plan)}
        app.job("dedup_transactions", rows, role=role, trigger=TRIGGER, lateness=lateness)

    dedup("bounded", STEADY, "30 seconds")
    dedup("scaled", SCALED)
    app.job("sliding_counts", {"transactions": app.rows(STEPPED)}, role="stepped", trigger=TRIGGER)
    app.job("daily_counts", {"transactions": app.rows(STARVED)}, role="starved", trigger=TRIGGER)


DRILL = Drill(
    name="change",
    id="H9 H12 H15 F22",
    kind="control",
    summary="state that reaches its plateau, new partitions, a clock that is set back, producers that send less",
    start=start,
    roles=("bounded", "scaled", "stepped", "starved"),
)
