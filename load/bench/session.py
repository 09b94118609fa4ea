"""The Spark session of measurements: two cores, two shuffle partitions, as the jobs are run."""

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def session(folder: Path, conf: Mapping[str, str] | None = None) -> Any:
    """A session with its warehouse in `folder`; `conf` is added or replaces what is here."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    from pyspark.sql import SparkSession

    from ledgerops.ledger.run.start import SESSION_CONF

    builder = SparkSession.builder.master("local[2]").appName("ledgerops-bench")
    for key, value in {
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.ui.port": "0",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.memory": "4g",
        **SESSION_CONF,
        **(conf or {}),
    }.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def start_noop(frame: Any, checkpoint: Path, name: str = "", mode: str = "append", **trigger: Any) -> Any:
    """A query that reads a frame and writes nothing; `trigger` is as in DataStreamWriter.trigger."""
    writer = frame.writeStream.format("noop").outputMode(mode).option("checkpointLocation", str(checkpoint))
    return (writer.queryName(name) if name else writer).trigger(**trigger).start()
