"""One fault of a query on Delta tables under watch: `python -m tests.e2e.table_faults FOLDER JARS FAULT SECONDS`.

Prints what `ledgerops diagnose` says of it live; FOLDER/eventlog and FOLDER/recording have the rest.
"""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming import StreamingQuery

import ledgerops
from tests.e2e.table_app import DELTA, session

PARTITIONS = 350  # of the table with small files


class Lake:
    """Two tables, a thread that writes to the first, and the query from it to the second."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.spark, self.folder, self.stop = spark, folder, threading.Event()
        self.bronze, self.silver = str(folder / "bronze"), str(folder / "silver")

    def append(self, rows: int, **columns: object) -> None:
        frame = self.spark.range(rows).repartition(4)
        for name, value in columns.items():
            frame = frame.withColumn(name, F.lit(value))
        frame.write.format("delta").mode("append").option("mergeSchema", "true").save(self.bronze)

    def feed(self, every: float, rows: int) -> None:
        def go() -> None:
            while not self.stop.wait(every):
                self.append(rows)

        threading.Thread(target=go, daemon=True).start()

    def read(self, **options: str) -> DataFrame:
        return self.spark.readStream.format("delta").options(**options).load(self.bronze)

    def write(self, rows: DataFrame, seconds: int = 2, by: str | None = None) -> StreamingQuery:
        writer = rows.writeStream.format("delta").queryName("silver")
        writer = writer.option("checkpointLocation", str(self.folder / "checkpoint"))
        writer = writer.partitionBy(by) if by else writer
        return writer.trigger(processingTime=f"{seconds} seconds").start(self.silver)


def healthy(lake: Lake) -> StreamingQuery:
    """An interval that a slow machine keeps too: a commit is 1 s here, and 4 s where others run beside it."""
    lake.feed(2.0, 50)
    return lake.write(lake.read(), seconds=15)


def cap(lake: Lake) -> StreamingQuery:
    """Four files each 1.5 s, of which a batch each 5 s may read three."""
    lake.feed(1.5, 50)
    return lake.write(lake.read(maxFilesPerTrigger="3"), seconds=5)


def small_files(lake: Lake) -> StreamingQuery:
    lake.feed(2.0, 700)
    return lake.write(lake.read().withColumn("part", F.col("id") % PARTITIONS), by="part")


def schema(lake: Lake) -> StreamingQuery:
    """A column is added to the source while the query runs."""
    query = lake.write(lake.read())
    threading.Timer(12, lambda: lake.append(5, added="x")).start()
    return query


def vacuumed(lake: Lake) -> StreamingQuery:
    """The files that the query reads next are gone when it starts again."""
    query = lake.write(lake.read(maxFilesPerTrigger="1"))
    time.sleep(10)
    query.stop()
    for _ in range(12):
        lake.append(5)
    lake.spark.sql("SET spark.databricks.delta.retentionDurationCheck.enabled = false")
    lake.spark.sql(f"OPTIMIZE delta.`{lake.bronze}`")
    lake.spark.sql(f"VACUUM delta.`{lake.bronze}` RETAIN 0 HOURS")
    return lake.write(lake.read(maxFilesPerTrigger="1"))


def conflict(lake: Lake) -> StreamingQuery:
    """Each batch deletes from a table that another writer changes at the same time."""
    lake.feed(1.0, 10)
    lake.spark.range(1000).write.format("delta").save(lake.silver)
    update = f"UPDATE delta.`{lake.silver}` SET id = id + 1"

    def each(rows: DataFrame, batch: int) -> None:
        other = threading.Thread(target=lambda: [lake.spark.sql(update) for _ in range(3)])
        other.start()
        for _ in range(3):
            lake.spark.sql(update)

    writer = lake.read().writeStream.queryName("silver").foreachBatch(each)
    return writer.option("checkpointLocation", str(lake.folder / "checkpoint")).start()


FAULTS = {fault.__name__: fault for fault in (healthy, cap, small_files, schema, vacuumed, conflict)}


def main(folder: Path, jars: str, fault: str, seconds: float) -> None:
    (folder / "eventlog").mkdir(parents=True)
    log = {"spark.eventLog.enabled": "true", "spark.eventLog.dir": f"file://{folder / 'eventlog'}"}
    spark = session(jars, DELTA | log)
    spark.sparkContext.setLogLevel("OFF")
    lake = Lake(spark, folder)
    lake.append(10)
    watch = ledgerops.attach(spark, port=0, recording=str(folder / "recording"))
    query = FAULTS[fault](lake)
    end = time.monotonic() + seconds
    while query.isActive and time.monotonic() < end:
        time.sleep(0.5)
    time.sleep(2)
    url = f"http://127.0.0.1:{watch.port}"
    subprocess.run([sys.executable, "-m", "ledgerops", "diagnose", "--from", url], check=False)
    lake.stop.set()
    query.stop()
    watch.close()
    spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], sys.argv[3], float(sys.argv[4]))
