"""H5, H6, H7, H8: ordinary variation, each in a query of its own.

`diurnal`: load from a quiet night to a busy noon and back. `zipf`: some keys are busier than others. `late`: one row
in 50 is late, but within the watermark delay. `copies`: one row in 20 is sent twice, unchanged.
"""

from ledgerops.drills.harness.drill import Drill
from ledgerops.drills.harness.target_app import TargetApp

DIURNAL = """
seed: 105
start: now
phases: [{shape: sine, low: 60, high: 400, period: 80s}]
"""
ZIPF = """
seed: 106
start: now
phases: [{shape: constant, rate: 200}]
keys: {customers: 4000, accounts: 4500, distribution: zipf, exponent: 0.8}
"""
LATE_ROWS = """
seed: 107
start: now
phases: [{shape: constant, rate: 200}]
disorder: {late: {share: 0.02, delay: uniform, low: 1s, high: 50s}}
"""
COPIES = """
seed: 108
start: now
phases: [{shape: constant, rate: 200}]
duplicates: {share: 0.05, within: 5s}
"""
TRIGGER = 4.0  # seconds: four queries share two cores


def start(app: TargetApp) -> None:
    app.job("daily_counts", {"transactions": app.rows(DIURNAL)}, role="diurnal", trigger=TRIGGER)
    app.job("sliding_counts", {"transactions": app.rows(ZIPF)}, role="zipf", trigger=TRIGGER)
    app.job("dedup_transactions", {"transactions": app.rows(LATE_ROWS)}, role="late", trigger=TRIGGER)
    app.job("dedup_transactions", {"transactions": app.rows(COPIES)}, role="copies", trigger=TRIGGER)


DRILL = Drill(
    name="ordinary",
    id="H5 H6 H7 H8",
    kind="control",
    summary="a daily sine of load, mildly uneven keys, lateness within the delay, exact copies",
    start=start,
    roles=("diurnal", "zipf", "late", "copies"),
)
