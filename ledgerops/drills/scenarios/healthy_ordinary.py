"""H5, H6, H7, H8: what every day brings, each to a query of its own.

`diurnal`: a day from a quiet night to a busy noon and back. `zipf`: some keys are busier than others. `late`: one row
in fifty is late, and none later than the query waits. `copies`: one row in twenty is sent twice, exactly as it was.
"""

from ledgerops.drills.harness.drill import Drill
from ledgerops.drills.harness.target_app import Patient

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
LATE = """
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


def start(patient: Patient) -> None:
    patient.job("daily_counts", {"transactions": patient.rows(DIURNAL)}, role="diurnal", trigger=TRIGGER)
    patient.job("sliding_counts", {"transactions": patient.rows(ZIPF)}, role="zipf", trigger=TRIGGER)
    patient.job("dedup_transactions", {"transactions": patient.rows(LATE)}, role="late", trigger=TRIGGER)
    patient.job("dedup_transactions", {"transactions": patient.rows(COPIES)}, role="copies", trigger=TRIGGER)


DRILL = Drill(
    name="ordinary",
    id="H5 H6 H7 H8",
    kind="control",
    summary="a day as a sine, mildly uneven keys, lateness within the delay, exact copies",
    start=start,
    roles=("diurnal", "zipf", "late", "copies"),
)
