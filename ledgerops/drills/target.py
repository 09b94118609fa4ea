"""The application of a scripted drill, run by `ledgerops exec` in the folder of the drill.

It writes `ready.json` when its queries run, and ends when there is a file `stop`.
"""

import os
import time
from pathlib import Path

from pyspark.sql import SparkSession

import ledgerops
from ledgerops.common.files import write_json
from ledgerops.common.shutdown import stop_queries
from ledgerops.drills.catalogue import BY_NAME
from ledgerops.drills.harness.target_app import TargetApp
from ledgerops.ledger.sources.spark_source import register

POLL_SECONDS = 0.1


def main(folder: Path) -> None:
    """Runs the queries of the drill that `folder/drill.json` names, until there is a file `stop`."""
    spark = SparkSession.builder.getOrCreate()
    app = TargetApp(spark, folder)
    register(spark)
    _warm_up(spark)
    app.origin = time.time()
    start = BY_NAME[app.drill].start
    assert start is not None
    start(app)
    write_json(folder / "ready.json", {"origin": app.origin, "url": ledgerops.attach(spark).url})
    parent = os.getppid()
    while not (folder / "stop").exists() and os.getppid() == parent:  # a parent that was killed cannot write the file
        app.turn()
        time.sleep(POLL_SECONDS)
    stop_queries([kept.query for kept in app.kept.values()], grace=5.0)
    spark.stop()


def _warm_up(spark: SparkSession) -> None:
    """Reads a few rows of the source, so that Python workers start before the baseline of the drill."""
    plan = "phases: [{shape: constant, rate: 100}]"
    rows = spark.read.format("ledger").options(plan=plan, limit="100", origin="0").load()
    rows.groupBy("account_id").count().write.format("noop").mode("overwrite").save()


if __name__ == "__main__":
    main(Path.cwd())
