"""Queries whose rows cost time: each row waits, as for a remote service, equally long on any machine."""

import time
from collections.abc import Iterable, Iterator
from typing import Any

from pyspark import TaskContext
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

import ledgerops
from ledgerops.drills.applications.outside import now
from ledgerops.drills.harness.target_app import TargetApp

WAITING_TASKS = 8  # that wait at the same time: more than the cores, as waiting needs none
CONF = {"spark.sql.shuffle.partitions": str(WAITING_TASKS)}
MASTER = f"local[{WAITING_TASKS}]"
SLOW_TASK = 1


def waiting(rows: DataFrame, milliseconds: int) -> DataFrame:
    """Each row with an answer for which its task waited in the JVM."""
    return rows.withColumn("answer", F.expr(f"reflect('java.lang.Thread', 'sleep', {milliseconds}L)"))


def each_row(batches: Iterable[Any]) -> Iterator[Any]:
    """For `mapInArrow`: passes rows on unchanged after waiting for each as long as `row` of the control file says."""
    for batch in batches:
        time.sleep(now("row") * batch.num_rows)
        yield batch


def one_task(batches: Iterable[Any]) -> Iterator[Any]:
    """For `mapInArrow`: passes rows on after waiting in SLOW_TASK for `straggle` seconds of the control file."""
    context = TaskContext.get()
    if context is not None and context.partitionId() == SLOW_TASK:
        time.sleep(now("straggle"))
    yield from batches


def by_partition(app: TargetApp, plan: str) -> DataFrame:
    """A stream of the embedded source of which each partition is a task, as Kafka's are."""
    options = {"plan": plan, "table": "transactions", "origin": repr(app.origin), "rowsPerTask": "1"}
    rows = app.spark.readStream.format("ledger").options(**options).load()
    return ledgerops.instrument(rows, event_time="event_time", key="customer_id")
