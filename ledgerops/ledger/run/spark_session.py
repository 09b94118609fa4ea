"""The Spark session of `ledgerops run`: one driver on this machine, or on the cluster that `master` names."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from ledgerops.servers.java import java_home

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def session_conf(cores: int, folder: Path) -> dict[str, str]:
    """What the jobs need of Spark, and what keeps a driver with six queries small and quiet."""
    return {
        "spark.app.name": "ledgerops",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": str(cores),
        "spark.sql.streaming.metricsEnabled": "false",
        "spark.sql.streaming.stopTimeout": "30s",
        "spark.sql.adaptive.enabled": "false",  # Spark refuses it for streaming and warns at every start
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        # Spark hides what these match where it shows options: a login of Kafka's client names none of its own words
        "spark.redaction.regex": "(?i)secret|password|token|access[.]?key|sasl|jaas|ssl",
        "spark.ui.port": "0",
        "spark.ui.showConsoleProgress": "false",
        # the UI keeps what the task collector reads; a day of small batches must not fill the driver's memory
        "spark.ui.retainedJobs": "500",
        "spark.ui.retainedStages": "1000",
        "spark.ui.retainedTasks": "20000",
        "spark.sql.ui.retainedExecutions": "50",
        "spark.sql.streaming.ui.retainedQueries": "20",
        "spark.driver.memory": "2g",
        # a busy machine may need longer than the 15 s of the default to bring up a Python worker
        "spark.python.authenticate.socketTimeout": "60s",
    }


def open_session(master: str | None, cores: int, folder: Path, extra: Mapping[str, str] | None = None) -> SparkSession:
    """A new session; without `master` it runs on `cores` cores of this machine. Raises UserError without a Java."""
    os.environ["JAVA_HOME"] = str(java_home())
    # without these Spark starts whichever python3 comes first on the PATH
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    if master is None:
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master(master or f"local[{cores}]")
    for key, value in {**session_conf(cores, folder), **(extra or {})}.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


@contextmanager
def output_to(log: Path) -> Iterator[None]:
    """Sends what this process and those it starts meanwhile write to stdout and stderr to a file.

    The JVM inherits both for its whole life: its warnings belong into a log, not into the live view.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    kept = [os.dup(1), os.dup(2)]
    with log.open("ab") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    try:
        yield
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        for target, original in enumerate(kept, start=1):
            os.dup2(original, target)
            os.close(original)
