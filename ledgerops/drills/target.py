"""The process of a drill's driver: `python -m ledgerops.drills.target FOLDER`.

It writes `ready.json` when its queries run, and ends when there is a file `stop`.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import ledgerops
from ledgerops.common.files import write_json
from ledgerops.common.shutdown import stop_queries
from ledgerops.drills import BY_NAME
from ledgerops.drills.harness.target_app import APP, POLL_SECONDS, TargetApp
from ledgerops.ledger.run.spark_session import open_session
from ledgerops.ledger.run.start import SESSION_CONF

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def main(folder: Path) -> None:
    """Runs the queries of the drill that `folder/drill.json` names, until there is a file `stop`."""
    stored = json.loads((folder / "drill.json").read_text("utf-8"))
    drill = BY_NAME[stored["drill"]]
    app = TargetApp(folder, drill.name, stored["names"], stored["seed"], stored.get("settings", {}))
    jars = app.settings.get("jars")
    conf = {
        **SESSION_CONF,
        "spark.app.name": APP,
        "spark.driver.memory": "1g",
        "spark.ui.enabled": "true",
        **({"spark.jars": jars} if jars else {}),
        **dict(drill.conf),
        **app.settings.get("conf", {}),
    }
    app.spark = open_session(drill.master, 2, folder / "work", conf)
    watched = app.settings.get("watch", {})
    recording = str(folder / "recording")
    app.watch = ledgerops.attach(app.spark, port=0, recording=recording, host_interval=2.0, **watched)
    if app.watch.error is not None:
        raise SystemExit(f"cannot watch: {app.watch.error}")
    _warm_up(app.spark)
    app.origin = time.time()
    drill.start(app)
    write_json(folder / "ready.json", {"origin": app.origin, "pid": os.getpid(), "url": app.watch.url})
    parent = os.getppid()
    while not (folder / "stop").exists() and os.getppid() == parent:  # a parent that was killed cannot write the file
        app.turn()
        time.sleep(POLL_SECONDS)
    for kept in app.kept.values():
        kept.again = None
    app.turn()
    write_json(folder / "queries.json", app.outcomes())
    stop_queries([kept.query for kept in app.kept.values()], grace=5.0)
    app.watch.close()
    app.spark.stop()


def _warm_up(spark: SparkSession) -> None:
    """Reads a few rows of the source, so that Python workers start before the baseline of the drill."""
    from ledgerops.ledger.sources.spark_source import register

    register(spark)
    plan = "phases: [{shape: constant, rate: 100}]"
    rows = spark.read.format("ledger").options(plan=plan, limit="100", origin="0").load()
    rows.groupBy("account_id").count().write.format("noop").mode("overwrite").save()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
