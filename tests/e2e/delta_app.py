"""A table-to-table query under watch: `python -m tests.e2e.delta_app FOLDER JARS SECONDS`.

One thread appends two files a second to FOLDER/bronze; the query copies them to FOLDER/silver, three files a batch at
most, so that it falls behind. Prints what the collector asked of the file system, as JSON.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from pathlib import Path

from pyspark.sql import SparkSession

import ledgerops
from ledgerops.agent import hadoop_files, tables

QUESTIONS = {"status": 0, "read": 0}


def session(jars: str) -> SparkSession:
    """A local Spark with Delta."""
    builder = (
        SparkSession.builder.master("local[2]")
        .appName("delta")
        .config("spark.jars", jars)
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.databricks.delta.snapshotPartitions", "2")
        .config("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension")
        .config("spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog")
        .config("spark.ui.port", "0")
        .config("spark.ui.showConsoleProgress", "false")
    )
    return builder.getOrCreate()


def count_questions() -> None:
    """Counts what the collector asks of the file system."""
    for name in QUESTIONS:
        ask = getattr(hadoop_files.HadoopFiles, name)

        def counted(self, *args, ask=ask, name=name):
            QUESTIONS[name] += 1
            return ask(self, *args)

        setattr(hadoop_files.HadoopFiles, name, counted)


def main(folder: Path, jars: str, seconds: float) -> None:
    spark = session(jars)
    spark.sparkContext.setLogLevel("ERROR")
    bronze, silver = str(folder / "bronze"), str(folder / "silver")

    def append(rows: int) -> None:
        spark.range(rows).repartition(2).write.format("delta").mode("append").save(bronze)

    append(10)
    count_questions()
    watch = ledgerops.attach(spark, port=0, recording=str(folder / "recording"))
    stream = spark.readStream.format("delta").option("maxFilesPerTrigger", "3").load(bronze)
    query = (
        stream.writeStream.format("delta")
        .queryName("silver")
        .option("checkpointLocation", str(folder / "checkpoint"))
        .trigger(processingTime="1 second")
        .start(silver)
    )
    ending = time.monotonic() + seconds
    number = 0
    while time.monotonic() < ending:
        number += 1
        append(number)
        if number == 5:
            spark.sql(f"OPTIMIZE delta.`{bronze}`")  # rewrites files without new rows
    asked, began = dict(QUESTIONS), ending - seconds
    took = time.monotonic() - began
    query.processAllAvailable()
    time.sleep(tables.ASK_SECONDS + 2)  # the last commit is seen by the next question
    query.stop()
    rows = spark.read.format("delta").load(silver).count()
    watch.close()
    print(json.dumps({"rows": rows, "asked": asked, "seconds": took, "threads": threading.active_count()}))
    spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], float(sys.argv[3]))
