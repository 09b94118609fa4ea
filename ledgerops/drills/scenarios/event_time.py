"""Rows that are late or dated ahead, and an input that holds back the watermark."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from ledgerops.drills.harness.case import ONE_FUTURE_ROW, TWO_PARTITIONS, Fault, scripted, steady, stepped
from ledgerops.drills.harness.effects import at_once
from ledgerops.drills.harness.target_app import TargetApp

# F08, late flood. The watermark delay of a deduplication and of windows of ten seconds is one minute.
A_FEW_LATE = "disorder: {late: {share: 0.01, delay: uniform, low: 1s, high: 10s}}"
LATE_FLOOD_PLAN = steady(
    38,
    200,
    f"{TWO_PARTITIONS}, {A_FEW_LATE}, duplicates: {{share: 0.01, within: 5s}}, changes: "
    "[{from: 45s, to: 90s, disorder: {late: {share: 0.2, delay: uniform, low: 2m, high: 10m}}}]",
)


def start_late_flood(app: TargetApp) -> None:
    app.job("dedup_transactions", LATE_FLOOD_PLAN)
    counts = (
        app.rows(LATE_FLOOD_PLAN)
        .withWatermark("event_time", "1 minute")
        .groupBy(F.window("event_time", "10 seconds"), "type")
        .agg(F.count("*").alias("transactions"), F.sum("amount").alias("amount"))
    )
    app.query(counts, role="counts")


# F09, future timestamp. The watermark follows the row and never moves back.
FUTURE_ROW_PLAN = steady(39, 200, f"{TWO_PARTITIONS}, {A_FEW_LATE}, {ONE_FUTURE_ROW}")

# F10, idle join input: of two streams joined within a minute, the second sends nothing from the onset.
ACCOUNTS = stepped(41, (40, 45), (0, 60), (40, None), more=TWO_PARTITIONS)


def side(rows: DataFrame, name: str) -> DataFrame:
    """One input of the join, with `name` before the names of its columns."""
    named = rows.select(F.col("event_time").alias(f"{name}_time"), F.col("account_id").alias(f"{name}_account"))
    return named.withWatermark(f"{name}_time", "10 seconds")


def start_idle_join_input(app: TargetApp) -> None:
    bought = side(app.rows(steady(40, 150, TWO_PARTITIONS), label="transactions"), "bought")
    opened = side(app.rows(ACCOUNTS, label="accounts"), "opened")
    near = F.expr(
        "opened_account = bought_account AND opened_time BETWEEN bought_time - INTERVAL 1 MINUTE "
        "AND bought_time + INTERVAL 1 MINUTE"
    )
    app.query(bought.join(opened, near))


DRILLS = (
    scripted(
        name="late-flood", id="F08", text="a fifth of the rows arrive minutes after their event time",
        start=start_late_flood, effect=at_once, seconds=135.0, roles=("main", "counts"),
        expected=("late-data",), component=("operator=dedupe",), remedy="late", may=("rows-dropped",),
        further=(Fault(rules=("late-data",), query="counts", component=("operator=stateStoreSave",), remedy="late"),),
    ),
    scripted(
        name="future-row", id="F09", text="one row is dated an hour ahead",
        start=lambda app: app.job("dedup_transactions", FUTURE_ROW_PLAN), effect=at_once,
        fault_seconds=30.0, seconds=80.0, recovers=False,
        expected=("watermark-jump",), component=("source=batch",), remedy="ahead of the clock", may=("rows-dropped",),
    ),
    scripted(
        name="idle-join-input", id="F10", text="one of two joined streams stops sending and holds back the watermark",
        start=start_idle_join_input, effect=at_once, fault_seconds=60.0, seconds=135.0,
        expected=("watermark-stalled",), component=("source=accounts",), remedy="silent|sends nothing",
        may=("state-growth", "freshness-breach"),
    ),
)  # fmt: skip
