"""Rows that contradict others, and rows that are lost on their way."""

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame

import ledgerops
from ledgerops.drills.applications.outside import now
from ledgerops.drills.harness.bundle import Bundle
from ledgerops.drills.harness.case import FAULT_SECONDS, ONSET_SECONDS, scripted, steady
from ledgerops.drills.harness.target_app import TargetApp
from ledgerops.ledger.plan.plan import parse_plan
from ledgerops.ledger.plan.record_stream import PlanStream, chunks

# F20, conflicting duplicates. One row in 50 is sent twice throughout. That is not a fault, and nothing is slow.
CONFLICTING_DUPLICATES_PLAN = steady(
    20,
    200,
    "duplicates: {share: 0.02, within: 5s}, changes: "
    "[{from: 45s, to: 90s, duplicates: {share: 0.02, within: 5s, conflicting: 0.25}}]",
)
CONFLICTING_DUPLICATES_TRIGGER_SECONDS = 4.0  # its state is in Python, and other drills may share the cores
RECORDS = round(200 * (ONSET_SECONDS + FAULT_SECONDS))


def first_conflict(bundle: Bundle) -> float | None:
    """When the first copy with another amount is sent."""
    stream = PlanStream(parse_plan(CONFLICTING_DUPLICATES_PLAN), bundle.times["origin"])
    for _, rows in chunks(stream, RECORDS):
        found = np.flatnonzero(rows.conflicting)
        if len(found):
            return bundle.times["origin"] + float(stream.due_time(rows.numbers[found[:1]])[0])
    return None


# F20b, ledger imbalance. Batches stay as fast as before, and there is no backlog.
ROWS_PER_LOSS = 50  # of which one is lost


def losing_rows(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """A step of the query that drops some rows while the control file says so."""
    for batch in batches:
        kept = np.arange(batch.num_rows) % ROWS_PER_LOSS != 0
        yield batch.filter(pa.array(kept)) if now("lose") else batch


def start_ledger_imbalance(app: TargetApp) -> None:
    def transform(transactions: DataFrame) -> DataFrame:
        entered = ledgerops.book(transactions, "in", amount="amount")
        passed = entered.mapInArrow(losing_rows, entered.schema)
        return ledgerops.book(passed, "out", amount="amount")

    app.job("masked_transactions", steady(25, 200), transform=transform)


def first_loss(bundle: Bundle) -> float | None:
    """When the first batch that was planned after the injection is done: its rows were lost."""
    done = (commit.done for commit in bundle.commits() if commit.planned >= bundle.times["injected"] and commit.done)
    return next(done, None)


# a finding about a wrong batch stays for half a minute
DRILLS = (
    scripted(
        name="conflicting-duplicates", id="F20", text="one row in 200 repeats a transaction with a different amount",
        start=lambda app: app.job(
            "conflicting_transactions", CONFLICTING_DUPLICATES_PLAN, trigger=CONFLICTING_DUPLICATES_TRIGGER_SECONDS
        ),
        effect=first_conflict, seconds=130.0,
        expected=("conflicting-duplicates",), component=("source",), remedy="producer",
    ),
    scripted(
        name="ledger-imbalance", id="F20b", text="a job that conserves money loses one row in 50",
        start=start_ledger_imbalance, fault={"lose": True}, effect=first_loss, seconds=130.0,
        expected=("ledger-imbalance",), component=("query",), remedy="stop the query",
    ),
)  # fmt: skip
