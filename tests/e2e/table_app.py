"""A table-to-table query under watch: `python -m tests.e2e.table_app FOLDER JARS SECONDS FORMAT`.

One thread appends two files a second to bronze; the query copies them to silver, three files a batch at
most, so that it falls behind. Prints what the collector asked of the file system, as JSON.
"""

import json
import sys
import threading
import time
from pathlib import Path

from pyspark.sql import SparkSession

import ledgerops
from ledgerops.agent import hadoop_files, iceberg_table, tables

QUESTIONS = {"exists": 0, "status": 0, "read": 0, "newest": 0}
DELTA = {
    "spark.databricks.delta.snapshotPartitions": "2",
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
}
LAKE = "spark.sql.catalog.lake"
ICEBERG = {LAKE: "org.apache.iceberg.spark.SparkCatalog", f"{LAKE}.type": "hadoop"}


def session(jars: str, conf: dict[str, str]) -> SparkSession:
    """A local Spark with a table format."""
    usual = {"spark.jars": jars, "spark.sql.shuffle.partitions": "2", "spark.ui.port": "0"}
    quiet = {"spark.ui.showConsoleProgress": "false"}
    return SparkSession.builder.master("local[2]").appName("tables").config(map=usual | quiet | conf).getOrCreate()


def count_questions() -> None:
    """Counts what the collector asks of the file system."""
    for name in QUESTIONS:
        owner = iceberg_table.JavaSnapshots if name == "newest" else hadoop_files.HadoopFiles
        ask = getattr(owner, name)

        def counted(self, *args, ask=ask, name=name):
            QUESTIONS[name] += 1
            return ask(self, *args)

        setattr(owner, name, counted)


def main(folder: Path, jars: str, seconds: float, form: str) -> None:
    iceberg = form == "iceberg"
    spark = session(jars, ICEBERG | {f"{LAKE}.warehouse": str(folder)} if iceberg else DELTA)
    spark.sparkContext.setLogLevel("ERROR")
    bronze, silver = (f"lake.db.{name}" if iceberg else str(folder / name) for name in ("bronze", "silver"))
    if iceberg:
        for name in (bronze, silver):
            spark.sql(f"CREATE TABLE {name} (id BIGINT) USING iceberg")

    def append(rows: int) -> None:
        spark.range(rows).repartition(2).write.format(form).mode("append").save(bronze)

    append(10)
    count_questions()
    watch = ledgerops.attach(spark, port=0, recording=str(folder / "recording"))
    limit = "streaming-max-files-per-micro-batch" if iceberg else "maxFilesPerTrigger"
    stream = spark.readStream.format(form).option(limit, "3").load(bronze)
    writer = stream.writeStream.format(form).option("checkpointLocation", str(folder / "checkpoint"))
    writer = writer.queryName("silver").trigger(processingTime="1 second")
    query = writer.toTable(silver) if iceberg else writer.start(silver)
    ending = time.monotonic() + seconds
    number = 0
    while time.monotonic() < ending:
        number += 1
        append(number)
        if number == 5 and not iceberg:
            spark.sql(f"OPTIMIZE delta.`{bronze}`")  # rewrites files without new rows
    asked, began = dict(QUESTIONS), ending - seconds
    took = time.monotonic() - began
    query.processAllAvailable()
    time.sleep(tables.ASK_SECONDS + 2)  # the last commit is seen by the next question
    query.stop()
    rows = spark.read.format(form).load(silver).count()
    watch.close()
    print(json.dumps({"rows": rows, "asked": asked, "seconds": took, "threads": threading.active_count()}))
    spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], float(sys.argv[3]), sys.argv[4])
