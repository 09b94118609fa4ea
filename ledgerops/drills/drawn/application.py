"""Starts the application of a drawn case under `ledgerops exec`: its settings for Spark, its variables, its options."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

from ledgerops.drills.drawn.case import Case
from ledgerops.servers.java import SHORT_LIVED

APPLICATIONS = Path(__file__).parent.parent / "applications"


def start_application(case: Case, folder: Path, servers: str) -> subprocess.Popen[bytes]:
    """Starts it in `folder`, with its output in app.log; `servers` are Kafka's, empty without."""
    (folder / "eventlog").mkdir()
    command = [sys.executable, "-m", "ledgerops", "exec", str(APPLICATIONS / f"{case.app}.py")]
    with (folder / "app.log").open("wb") as log:
        return subprocess.Popen(
            [*command, *_options(case, servers)],
            cwd=folder,
            env=_environment(case, folder, servers),
            stdout=log,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
        )


def _environment(case: Case, folder: Path, servers: str) -> dict[str, str]:
    """This process's variables without settings of its own for Spark and ledgerops, and with those of the case."""
    words = ["--master", case.master]
    for name, value in _conf(case, folder).items():
        words += ["--conf", f"{name}={value}"]
    environ = {name: value for name, value in os.environ.items() if not name.startswith(("LEDGEROPS_", "SPARK_"))}
    environ |= {
        "PYSPARK_SUBMIT_ARGS": shlex.join([*words, "pyspark-shell"]),
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONPATH": str(APPLICATIONS.parents[2]),
        "OUTSIDE": str(folder / "outside.json"),
        "LEDGEROPS_PORT": "0",
        "LEDGEROPS_RECORDING": str(folder / "recording"),
    }
    if servers and case.kafka_watched:
        environ["LEDGEROPS_KAFKA_SERVERS"] = servers
    return environ


def _conf(case: Case, folder: Path) -> dict[str, str]:
    conf = {
        "spark.driver.memory": "768m",
        "spark.driver.extraJavaOptions": SHORT_LIVED,
        "spark.executor.extraJavaOptions": SHORT_LIVED,
        "spark.ui.port": "0",
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": f"file://{folder / 'eventlog'}",
        "spark.sql.streaming.minBatchesToRetain": "2000",  # the truth is read from the checkpoint
        "spark.local.dir": str(folder / "local"),
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        **case.conf,
    }
    if case.source == "kafka":
        from ledgerops.servers import jars

        conf["spark.jars"] = ",".join(map(str, jars.connector_jars()))
    return conf


def _options(case: Case, servers: str) -> list[str]:
    given: dict[str, Any] = {**case.options, "checkpoint": "checkpoints", "name": case.query}
    if case.source in ("rate", "files", "kafka"):
        given |= {"source": case.source, "servers": servers, "partitions": case.partitions}
    if case.trigger is not None:
        given["trigger"] = "once" if case.trigger < 0 else f"{round(case.trigger * 1000)} milliseconds"
        if case.trigger < 0:
            given["start"] = "earliest"
    words = []
    for name, value in given.items():
        words += [f"--{name}"] if value is True else [f"--{name}", str(value)]
    return words
