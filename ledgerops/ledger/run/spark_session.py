"""The Spark session of `ledgerops run`: one driver on this machine, or on the cluster that `master` names."""

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from pyspark.sql import SparkSession

from ledgerops.errors import UserError
from ledgerops.ledger.run import cluster
from ledgerops.servers.java import SHORT_LIVED, java_home

JVM_OPTION_VARIABLES = ("JDK_JAVA_OPTIONS", "JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS", "SPARK_SUBMIT_OPTS")


def quick_start_conf() -> dict[str, str]:
    """Settings for a driver that lives for minutes on this machine; empty where the user has chosen JVM options."""
    chosen = any(os.environ.get(name) for name in JVM_OPTION_VARIABLES)
    arguments = os.environ.get("PYSPARK_SUBMIT_ARGS", "") + _spark_defaults()
    if chosen or "JavaOptions" in arguments or "--driver-java-options" in arguments:
        return {}
    return {"spark.driver.extraJavaOptions": SHORT_LIVED}


def _spark_defaults() -> str:
    home = os.environ.get("SPARK_HOME")
    folder = os.environ.get("SPARK_CONF_DIR") or (f"{home}/conf" if home else None)
    try:
        lines = (Path(folder) / "spark-defaults.conf").read_text("utf-8").splitlines() if folder else []
    except (OSError, UnicodeDecodeError):
        return ""
    return "\n".join(line for line in lines if not line.lstrip().startswith("#"))


def session_conf(cores: int, folder: Path) -> dict[str, str]:
    """What the jobs need of Spark, and what keeps a driver with a few queries small and quiet."""
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


def open_session(
    master: str | None,
    cores: int,
    folder: Path,
    extra: Mapping[str, str] | None = None,
    executor_python: str | None = None,
    log: Path | None = None,
) -> SparkSession:
    """A new session; without `master` it runs on `cores` cores of this machine.

    The executors of a master run `executor_python`, or what PYSPARK_PYTHON names. Raises UserError without a Java,
    when the master does not answer, and when Spark does not start; `log` is where the JVM has said why.
    """
    os.environ["JAVA_HOME"] = str(java_home())
    # without these Spark starts whichever python3 comes first on the PATH
    given = os.environ.get("PYSPARK_PYTHON") if cluster.is_remote(master) else None
    os.environ["PYSPARK_PYTHON"] = executor_python or given or sys.executable
    os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    if master is not None:
        cluster.check_master(master)
    else:
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    builder = SparkSession.builder.master(master or f"local[{cores}]")
    for key, value in {**session_conf(cores, folder), **(extra or {})}.items():
        builder = builder.config(key, value)
    try:
        return builder.getOrCreate()
    except Exception as error:  # of a setting, or of py4j, with a page of Java's frames
        where = f"on {master}" if cluster.is_remote(master) else "on this machine"
        hint = f"; see {log}" if log else ""
        raise UserError(f"cannot start Spark {where}: {cluster.one_line(str(error))}{hint}") from None


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
