"""Queries whose rows cost time: each row waits, as for a remote service, equally long on any machine."""

import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pandas as pd
from pyspark import TaskContext
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

import ledgerops
from ledgerops.drills.harness.fault_control import FaultControl
from ledgerops.drills.harness.target_app import TargetApp

WAITING_TASKS = 8  # that wait at the same time: more than the cores, as waiting needs none
CONF = {"spark.sql.shuffle.partitions": str(WAITING_TASKS)}
MASTER = f"local[{WAITING_TASKS}]"
SCORES = "customer_id STRING, rows LONG"


def waiting(rows: DataFrame, milliseconds: int) -> DataFrame:
    """Each row with an answer for which its task waited in the JVM."""
    return rows.withColumn("answer", F.expr(f"reflect('java.lang.Thread', 'sleep', {milliseconds}L)"))


def scored(rows: DataFrame, milliseconds: float) -> DataFrame:
    """The number of rows of each customer so far: state by customer, in Python, where each row waits."""

    def score(key: tuple[str], parts: Iterable[pd.DataFrame], state: Any) -> Iterator[pd.DataFrame]:
        count = sum(map(len, parts))
        time.sleep(milliseconds / 1000 * count)
        total = count + (state.get[0] if state.exists else 0)
        state.update((total,))
        yield pd.DataFrame({"customer_id": [key[0]], "rows": [total]})

    return rows.groupBy("customer_id").applyInPandasWithState(score, SCORES, "rows LONG", "update", "NoTimeout")


def each_row(faults: FaultControl, key: str) -> Callable[[Iterable[Any]], Iterator[Any]]:
    """For `mapInArrow`: passes rows on unchanged after waiting for each as long as the control file says."""

    def step(batches: Iterable[Any]) -> Iterator[Any]:
        for batch in batches:
            time.sleep(float(faults(key, 0.0)) * batch.num_rows)
            yield batch

    return step


def one_task(faults: FaultControl, task: int) -> Callable[[Iterable[Any]], Iterator[Any]]:
    """For `mapInArrow`: passes rows on after waiting in that task for `straggle` seconds of the control file."""

    def step(batches: Iterable[Any]) -> Iterator[Any]:
        context = TaskContext.get()
        if context is not None and context.partitionId() == task:
            time.sleep(float(faults("straggle", 0.0)))
        yield from batches

    return step


def by_partition(app: TargetApp, plan: str) -> DataFrame:
    """A stream of the embedded source of which each partition is a task, as Kafka's are."""
    options = {"plan": plan, "table": "transactions", "origin": repr(app.origin), "rowsPerTask": "1"}
    rows = app.spark.readStream.format("ledger").options(**options).load()
    return ledgerops.instrument(rows, event_time="event_time", key="customer_id")
