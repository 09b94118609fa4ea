"""Batches whose cost is not their rows': Python, planning, too many tasks, and another query."""

import time
from collections.abc import Iterator
from math import sqrt

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from ledgerops.drills.applications.outside import compute, now
from ledgerops.drills.harness.case import LATE_SYMPTOMS, TWO_PARTITIONS, scripted, steady
from ledgerops.drills.harness.effects import batches_outlast
from ledgerops.drills.harness.target_app import TargetApp

# A task without state takes about 1 ms to start and end. With a state store to load and commit, 200 would be enough.
USUAL_PARTITIONS, TOO_MANY_PARTITIONS = 2, 500
TOO_MANY_TASKS_TRIGGER_SECONDS = 1.0


def start_too_many_tasks(app: TargetApp) -> None:
    def write(rows: DataFrame, batch: int) -> None:
        tasks = int(now("partitions", USUAL_PARTITIONS))
        rows.repartition(tasks, "customer_id").write.format("noop").mode("overwrite").save()

    app.query(app.rows(steady(191, 60)), write=write, trigger=TOO_MANY_TASKS_TRIGGER_SECONDS)


def each_row(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Passes rows on unchanged after waiting for each as long as `row` of the control file says."""
    for batch in batches:
        time.sleep(now("row") * batch.num_rows)
        yield batch


def start_python_bound(app: TargetApp) -> None:
    """The query does not use foreachBatch, behind which Spark reports no Python time."""
    rows = app.partitioned_rows(steady(201, 100, TWO_PARTITIONS))
    app.query(rows.mapInArrow(each_row, rows.schema), sink="noop")


TABLE_ROWS = 6_000_000  # some seconds to read and to join


def start_table_scan(app: TargetApp) -> None:
    """While the control file says so, each batch is joined with a table that is read anew for it."""
    place = str(app.folder / "work" / "accounts")
    app.spark.range(TABLE_ROWS).select("id", F.hex("id").alias("account")).write.csv(place)
    accounts = app.spark.read.schema("id BIGINT, account STRING").csv(place)

    def write(rows: DataFrame, batch: int) -> None:
        if now("scan"):
            rows = rows.join(accounts, F.hash("customer_id") == accounts.id, "left")
        rows.write.format("noop").mode("overwrite").save()

    app.query(app.rows(steady(231, 60)), write=write)


PLANNING_SECONDS = 2.0
LONG_TRIGGER_SECONDS, SHORT_TRIGGER_SECONDS = 10.0, 0.2


def costly_constant(spark: SparkSession) -> str:
    """A constant expression that takes PLANNING_SECONDS to fold on this machine: its cost is quadratic."""
    length, times = 3000, []
    for _ in range(6):  # the first ones are warm-up, and others may have taken the cores
        began = time.monotonic()
        spark.sql(f"SELECT {_distance(length)}").collect()
        times.append(time.monotonic() - began)
    return _distance(round(length * sqrt(PLANNING_SECONDS / min(times))))


def _distance(length: int) -> str:
    return f"levenshtein(repeat('a', {length}), repeat('b', {length}))"


def start_small_batch_overhead(app: TargetApp) -> None:
    """The few rows take no time. The cost is a constant that the Spark optimizer folds again for each batch."""
    rows = app.rows(steady(241, 5)).withColumn("folded", F.expr(costly_constant(app.spark)))
    app.query(rows, trigger=LONG_TRIGGER_SECONDS)
    deployed = [LONG_TRIGGER_SECONDS]

    def deploy() -> None:
        wanted = SHORT_TRIGGER_SECONDS if now("short") else LONG_TRIGGER_SECONDS
        if deployed[-1] != wanted:
            deployed.append(wanted)
            app.kept["main"].query.stop()
            app.query(rows, trigger=wanted)

    app.each_turn.append(deploy)


BURNING_TASKS = 4  # two rounds on two cores: whoever asks for a core meanwhile waits for the second, too
BURN_SECONDS = 2.2  # of computing in each of them


def start_noisy_neighbour(app: TargetApp) -> None:
    """The neighbour's own batches also outlast their interval, but only the other query suffers through no fault of its
    own."""
    app.job("dedup_transactions", steady(55, 100))
    rows = app.rows(steady(56, 100)).repartition(BURNING_TASKS)
    app.query(rows.mapInArrow(compute, rows.schema), role="hog")


DRILLS = (
    scripted(
        name="too-many-tasks", id="F19", text="a few rows are shuffled into 500 partitions at a trigger of 1 s",
        start=start_too_many_tasks, fault={"partitions": TOO_MANY_PARTITIONS},
        effect=batches_outlast(TOO_MANY_TASKS_TRIGGER_SECONDS * 1.33),
        expected=("too-many-tasks",), component=("stage",), remedy=r"repartition\(500\)", may=LATE_SYMPTOMS,
    ),
    scripted(
        name="python-bound", id="P01", text="a Python function takes 25 ms per row",
        start=start_python_bound, fault={"row": 0.025}, effect=batches_outlast(2.0),
        expected=("python-bound",), component=("stage=Python",), remedy="pandas_udf", may=LATE_SYMPTOMS,
    ),
    scripted(
        name="table-scan", id="P08", text="each batch is joined with a table of 6 million rows that is read anew",
        start=start_table_scan, fault={"scan": True}, effect=batches_outlast(2.0),
        expected=("table-scan",), component=("query=table",), remedy="reads of a table", may=LATE_SYMPTOMS,
    ),
    scripted(
        name="small-batch-overhead", id="P05",
        text="a query whose planning takes 2 s is deployed with a trigger of 0.2 s",
        start=start_small_batch_overhead, fault={"short": True}, effect=batches_outlast(SHORT_TRIGGER_SECONDS + 1.0),
        fault_seconds=50.0, seconds=135.0, expected=("small-batch-overhead",), component=("query=planning",),
        remedy="interval", may=("trigger-overrun", "freshness-breach"),
    ),
    scripted(
        name="noisy-neighbour", id="X5", text="another query of the driver starts to use every core",
        start=start_noisy_neighbour, fault={"burn": BURN_SECONDS}, effect=batches_outlast(2.0),
        roles=("main", "hog"), heavy=True,
        expected=("noisy-neighbour",), component=("query={hog}",), remedy="fair|{hog}",
        may=(*LATE_SYMPTOMS, "cpu-saturated"), elsewhere=(*LATE_SYMPTOMS, "cpu-saturated", "python-bound"),
    ),
)  # fmt: skip
