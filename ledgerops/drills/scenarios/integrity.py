"""Rows that contradict others, and rows that are lost on their way."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

import ledgerops
from ledgerops.drills.harness.bundle import Bundle
from ledgerops.drills.harness.drill import FAULT_SECONDS, ONSET_SECONDS, Drill, cause
from ledgerops.drills.harness.fault_control import FaultControl
from ledgerops.drills.harness.target_app import TargetApp
from ledgerops.ledger.plan.plan import parse_plan
from ledgerops.ledger.plan.record_stream import PlanStream, chunks
from ledgerops.ledger.sources.workers import make_importable

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

# F20, conflicting duplicates: from the onset, one row in 200 repeats a transaction with a different amount.
#
# One row in 50 is sent twice throughout. That is not a fault, and nothing is slow.
REPAIRED = ONSET_SECONDS + FAULT_SECONDS
CONFLICTING_DUPLICATES_PLAN = f"""
seed: 20
start: now
phases: [{{shape: constant, rate: 200}}]
duplicates: {{share: 0.02, within: 5s}}
changes:
  - {{from: {ONSET_SECONDS:g}s, to: {REPAIRED:g}s, duplicates: {{share: 0.02, within: 5s, conflicting: 0.25}}}}
"""
CONFLICTING_DUPLICATES_TRIGGER_SECONDS = 4.0  # its state is in Python, and other drills may share the cores
RECORDS = round(200 * (ONSET_SECONDS + FAULT_SECONDS))


def effect_conflicting_duplicates(bundle: Bundle) -> float | None:
    """When the first copy with another amount is sent."""
    stream = PlanStream(parse_plan(CONFLICTING_DUPLICATES_PLAN), bundle.times["origin"])
    for _, rows in chunks(stream, RECORDS):
        found = np.flatnonzero(rows.conflicting)
        if len(found):
            return bundle.times["origin"] + float(stream.due_time(rows.numbers[found[:1]])[0])
    return None


CONFLICTING_DUPLICATES = Drill(
    name="conflicting-duplicates",
    id="F20",
    summary="one row in 200 repeats a transaction with a different amount",
    start=lambda app: app.job(
        "conflicting_transactions",
        {"transactions": app.rows(CONFLICTING_DUPLICATES_PLAN)},
        trigger=CONFLICTING_DUPLICATES_TRIGGER_SECONDS,
    ),
    effect=effect_conflicting_duplicates,
    recovery_seconds=40.0,  # a finding about a wrong batch stays for half a minute
    truth=cause("conflicting-duplicates", component=("source",), remedy="producer"),
)


# F20b, ledger imbalance: from the onset, a step of a job that conserves money loses one row in 50.
#
# Batches stay as fast as before, and there is no backlog.
LEDGER_IMBALANCE_PLAN = "{seed: 25, start: now, phases: [{shape: constant, rate: 200}]}"
ROWS_PER_LOSS = 50  # of which one is lost


def losing_rows(control: Path) -> object:
    """A step of the query that drops some rows while the control file says so."""
    faults = FaultControl(control)

    def step(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import numpy as np
        import pyarrow

        for batch in batches:
            if faults("lose"):
                kept = np.arange(batch.num_rows) % ROWS_PER_LOSS != 0
                yield batch.filter(pyarrow.array(kept))
            else:
                yield batch

    return step


def start_ledger_imbalance(app: TargetApp) -> None:
    make_importable(app.spark)

    def transform(transactions: DataFrame) -> DataFrame:
        entered = ledgerops.book(transactions, "in", amount="amount")
        passed = entered.mapInArrow(losing_rows(app.folder / "control.json"), entered.schema)
        return ledgerops.book(passed, "out", amount="amount")

    app.job("masked_transactions", {"transactions": app.rows(LEDGER_IMBALANCE_PLAN)}, transform=transform)


def effect_ledger_imbalance(bundle: Bundle) -> float | None:
    """When the first batch that was planned after the injection is done: its rows were lost."""
    done = (each.done for each in bundle.commits() if each.planned >= bundle.times["injected"] and each.done)
    return next(done, None)


LEDGER_IMBALANCE = Drill(
    name="ledger-imbalance",
    id="F20b",
    summary="a job that conserves money loses one row in 50",
    start=start_ledger_imbalance,
    control={"lose": True},
    effect=effect_ledger_imbalance,
    recovery_seconds=40.0,  # a finding about a wrong batch stays for half a minute
    truth=cause("ledger-imbalance", component=("query",), remedy="stop the query"),
)


DRILLS = (CONFLICTING_DUPLICATES, LEDGER_IMBALANCE)
