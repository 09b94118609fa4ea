"""F20, conflicting duplicates: from the onset, one row in 200 repeats a transaction with a different amount.

One row in 50 is sent twice throughout. That is not a fault, and nothing is slow.
"""

from __future__ import annotations

import numpy as np

from ledgerops.drills.harness.bundle import Bundle
from ledgerops.drills.harness.drill import FAULT_SECONDS, ONSET_SECONDS, Drill, cause
from ledgerops.ledger.plan.plan import parse_plan
from ledgerops.ledger.plan.record_stream import PlanStream, chunks

REPAIRED = ONSET_SECONDS + FAULT_SECONDS
PLAN = f"""
seed: 20
start: now
phases: [{{shape: constant, rate: 200}}]
duplicates: {{share: 0.02, within: 5s}}
changes:
  - {{from: {ONSET_SECONDS:g}s, to: {REPAIRED:g}s, duplicates: {{share: 0.02, within: 5s, conflicting: 0.25}}}}
"""
TRIGGER = 4.0  # seconds: its state is in Python, and other drills may share the cores
RECORDS = round(200 * (ONSET_SECONDS + FAULT_SECONDS))


def effect(bundle: Bundle) -> float | None:
    """When the first copy with another amount is sent."""
    stream = PlanStream(parse_plan(PLAN), bundle.times["origin"])
    for _, rows in chunks(stream, RECORDS):
        found = np.flatnonzero(rows.conflicting)
        if len(found):
            return bundle.times["origin"] + float(stream.due_time(rows.numbers[found[:1]])[0])
    return None


DRILL = Drill(
    name="conflicting-duplicates",
    id="F20",
    summary="one row in 200 repeats a transaction with a different amount",
    start=lambda app: app.job("conflicting_transactions", {"transactions": app.rows(PLAN)}, trigger=TRIGGER),
    effect=effect,
    recovery_seconds=40.0,  # a finding about a wrong batch stays for half a minute
    truth=cause("conflicting-duplicates", component=("source",), remedy="producer"),
)
