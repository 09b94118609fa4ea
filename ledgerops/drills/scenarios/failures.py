"""Queries that fail: once, again and again, or with a backlog to catch up with."""

from collections.abc import Iterator
from contextlib import contextmanager

import pandas as pd
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from ledgerops.drills.applications.outside import now
from ledgerops.drills.harness.case import ONE_FUTURE_ROW, TWO_PARTITIONS, scripted, steady
from ledgerops.drills.harness.effects import fails
from ledgerops.drills.harness.injector import Injector
from ledgerops.drills.harness.target_app import TargetApp

# The poison is the one row that is dated an hour ahead: the same at each attempt, like a bad record in a topic.
CRASH_PLAN = steady(44, 150, f"{TWO_PARTITIONS}, {ONE_FUTURE_ROW}")
POISON = "event_time > current_timestamp() + INTERVAL 30 MINUTES"


def parsed(rows: DataFrame) -> DataFrame:
    """The rows as JSON text, the poison cut short, and read again in FAILFAST mode."""
    text = F.to_json(F.struct("transaction_id", "account_id"))
    cut = rows.select(F.when(F.expr(POISON), F.substring(text, 1, 20)).otherwise(text).alias("text"))
    read = F.from_json("text", "transaction_id string, account_id string", {"mode": "FAILFAST"})
    return cut.select(read.alias("row")).select("row.*")


def score(batches: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
    """Passes rows on, and raises on the bad row until the control file says to skip it."""
    for rows in batches:
        bad = rows[rows["poison"]]
        if len(bad) and not now("skip"):
            raise ValueError(f"no score for transaction {bad['transaction_id'].iloc[0]}")
        yield rows


def start_crash_loop(app: TargetApp) -> None:
    rows: DataFrame = app.rows(CRASH_PLAN).select("transaction_id", F.expr(POISON).alias("poison"))
    app.query(rows.mapInPandas(score, "transaction_id string, poison boolean"), keep=True)


@contextmanager
def until_skipped(injector: Injector) -> Iterator[None]:
    """The bad row is skipped in the end."""
    yield
    injector.outside.set(skip=True)


# X2, catch-up after a crash: the sink fails, the query is down for 30 s, then processes the accumulated backlog.
#
# The crash caused the backlog. Neither the load nor the cap on the batch size may be named as the cause.
CATCH_UP_CAP = 1200  # rows a batch: twice what arrives


def start_catch_up(app: TargetApp) -> None:
    def begin() -> None:
        app.job("dedup_transactions", app.rows(steady(52, 300, TWO_PARTITIONS), max_rows=CATCH_UP_CAP))

    def turn() -> None:
        if app.kept["main"].failure_noted and not now("fail"):
            begin()

    begin()
    app.each_turn.append(turn)


DRILLS = (
    # in FAILFAST mode; nothing restarts the query
    scripted(
        name="crash", id="F14a", text="one record that cannot be parsed ends the query",
        start=lambda app: app.query(parsed(app.rows(CRASH_PLAN))), effect=fails(),
        fault_seconds=20.0, seconds=70.0, recovers=False, expected=("query-failed",),
        component=("query=MALFORMED_RECORD",), remedy="same checkpoint", may=("freshness-breach",),
    ),
    scripted(
        name="crash-loop", id="F14b", text="a function raises on one row, and the query is restarted each time",
        start=start_crash_loop, breaks=until_skipped, effect=fails(times=3), fault_seconds=40.0, seconds=115.0,
        expected=("crash-loop",), component=("query",), remedy="dead-letter|restarts",
        may=("query-failed", "freshness-breach"),
    ),
    scripted(
        name="catch-up", id="X2", text="a crash, 30 s of downtime, and the backlog that results",
        start=start_catch_up, fault={"fail": "disk quota exceeded"}, effect=fails(), fault_seconds=30.0, seconds=135.0,
        expected=("query-failed",), component=("query",), remedy="same checkpoint", may=("freshness-breach",),
    ),
)  # fmt: skip
