"""Starts the application of a case under `ledgerops exec`: its settings for Spark, its variables, its options."""

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ledgerops.drills.harness.case import Case
from ledgerops.drills.harness.injector import Injector
from ledgerops.ledger.run.spark_session import session_conf
from ledgerops.ledger.run.start import SESSION_CONF
from ledgerops.ledger.sinks.delta import CONF
from ledgerops.servers.jars import connector_jars, delta_jars
from ledgerops.servers.java import SHORT_LIVED, java_home

APPLICATIONS = Path(__file__).parent.parent / "applications"
OUTSIDE = APPLICATIONS / "outside.py"  # what they share
SCRIPTED = APPLICATIONS.parent / "target.py"  # whose queries the drill itself starts
# what an operator sets for Prometheus: the names of the metrics must not contain the random id of the application
SPARK_CONF: Mapping[str, str] = {
    "spark.sql.streaming.metricsEnabled": "true",
    "spark.ui.prometheus.enabled": "true",
    "spark.metrics.namespace": "spark",
    "spark.metrics.conf.*.sink.prometheusServlet.class": "org.apache.spark.metrics.sink.PrometheusServlet",
    "spark.metrics.conf.*.sink.prometheusServlet.path": "/metrics/prometheus",
}
APP = "ledgerops drill"  # it must not say which drill it is


def start_application(case: Case, injector: Injector) -> subprocess.Popen[bytes]:
    """Starts it in the folder of the drill, with its output in app.log. A plain one is copied to application/ first, as
    it may be another one by the time that somebody looks at the drill."""
    folder = injector.folder
    script = SCRIPTED if case.start else APPLICATIONS / f"{case.app}.py"
    if not case.start:
        (folder / "application").mkdir()
        for part in (script, OUTSIDE):
            shutil.copy(part, folder / "application")
    command = [sys.executable, "-m", "ledgerops", "exec", str(script)]
    with (folder / "app.log").open("wb") as log:
        return subprocess.Popen(
            command if case.start else [*command, *options(case, injector.servers)], cwd=folder,
            env=_environment(case, injector), stdout=log, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
        )  # fmt: skip


def _environment(case: Case, injector: Injector) -> dict[str, str]:
    """This process's variables without settings of its own for Spark and ledgerops, and with those of the case."""
    words = ["--master", case.master]
    for name, value in _conf(case, injector).items():
        words += ["--conf", f"{name}={value}"]
    environ = {name: value for name, value in os.environ.items() if not name.startswith(("LEDGEROPS_", "SPARK_"))}
    environ |= {
        "JAVA_HOME": str(java_home()),
        "PYSPARK_SUBMIT_ARGS": shlex.join([*words, "pyspark-shell"]),
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONPATH": str(APPLICATIONS.parents[2]),
        "OUTSIDE": str(injector.outside.file),
        "LEDGEROPS_PORT": "0",
        "LEDGEROPS_RECORDING": str(injector.folder / "recording"),
        **({"LEDGEROPS_HOST_INTERVAL": "2"} if case.start else {}),
        **injector.environ,
    }
    if injector.servers and case.kafka_watched:
        environ["LEDGEROPS_KAFKA_SERVERS"] = injector.servers
    return environ


def _conf(case: Case, injector: Injector) -> dict[str, str]:
    folder = injector.folder
    conf = {
        "spark.driver.memory": "768m",
        "spark.driver.extraJavaOptions": SHORT_LIVED,
        "spark.executor.extraJavaOptions": SHORT_LIVED,
        "spark.ui.port": "0",
        "spark.sql.streaming.minBatchesToRetain": "2000",  # the truth is read from the checkpoint
        "spark.local.dir": str(folder / "local"),
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
    }
    if case.start:
        conf = {**session_conf(2, folder), **SESSION_CONF, **conf, "spark.driver.memory": "1g", "spark.app.name": APP}
    else:  # a scripted drill is scored by its recording only
        (folder / "eventlog").mkdir()
        conf |= {"spark.eventLog.enabled": "true", "spark.eventLog.dir": f"file://{folder / 'eventlog'}"}
        conf |= {**SPARK_CONF, "spark.ui.port": str(injector.ui_port)}
    jars = connector_jars() if injector.servers else delta_jars() if case.source == "delta" else ()
    if jars:
        conf["spark.jars"] = ",".join(map(str, jars))
    return {**conf, **(CONF if case.source == "delta" else {}), **case.conf, **injector.conf}


def options(case: Case, servers: str) -> list[str]:
    """The words of a plain application's command line; `servers`: of its broker."""
    given: dict[str, Any] = {**case.options, "checkpoint": "checkpoints", "name": case.query}
    if case.source in ("rate", "files", "kafka", "delta"):
        given |= {"source": case.source, "servers": servers, "partitions": case.partitions}
    if case.trigger is not None:
        given["trigger"] = "once" if case.trigger < 0 else f"{round(case.trigger * 1000)} milliseconds"
        if case.trigger < 0:
            given["start"] = "earliest"
    words = []
    for name, value in given.items():
        words += [f"--{name}"] if value is True else [f"--{name}", str(value)]
    return words
