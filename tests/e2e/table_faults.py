"""Faults of queries on Delta tables under watch, one after the other: `python -m tests.e2e.table_faults FOLDER JARS`.

The query of each fault has its name. When its finding is there, what `ledgerops diagnose` says of it is printed as a
line of JSON; FOLDER/eventlog and FOLDER/recording have the rest. FOLDER/full is a small file system.
"""

import json
import re
import sys
import threading
import time
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming import StreamingQuery

import ledgerops
from ledgerops.drills.harness.delta_table import DeltaTable
from tests.e2e.table_app import DELTA, session
from tests.programs import python
from tests.serving import fetched

MAX_SECONDS = 240.0  # until a fault is named, on a busy machine
HEALTHY_SECONDS = 50.0
PARTITIONS = 350  # of the table with small files
FAILED = ("query-failed",)


class Lake:
    """The tables of one fault: one that is written without Spark, and one that the query writes."""

    def __init__(self, spark: SparkSession, folder: Path, url: str) -> None:
        self.spark, self.folder, self.name, self._url = spark, folder, folder.name, url
        self.bronze, self.silver = DeltaTable(folder / "bronze"), folder / "silver"
        self._closed = threading.Event()
        self._threads: list[threading.Thread] = []
        self.append(10)

    def append(self, rows: int, table: DeltaTable | None = None) -> None:
        row = {"key": "k", "amount": 0.5, "event_time": "2026-11-25T10:00:00Z"}
        (table or self.bronze).append([{"id": str(number), **row} for number in range(rows)])

    def feed(self, every: float, rows: int, table: DeltaTable | None = None) -> None:
        """Commits rows each `every` seconds from now on."""

        def go() -> None:
            while not self._closed.wait(every):
                self.append(rows, table)

        self._threads.append(threading.Thread(target=go, daemon=True))
        self._threads[-1].start()

    def close(self) -> None:
        self._closed.set()
        for thread in self._threads:
            thread.join()

    def read(self, **options: object) -> DataFrame:
        return self.spark.readStream.format("delta").options(**options).load(str(self.folder / "bronze"))

    def start(self, writer: Any, seconds: float = 1.0) -> StreamingQuery:
        writer = writer.queryName(self.name).option("checkpointLocation", str(self.folder / "checkpoint"))
        return writer.trigger(processingTime=f"{seconds} seconds").start()

    def append_to(self, place: Path, rows: DataFrame, form: str = "delta") -> Any:
        return rows.writeStream.format(form).option("path", str(place))

    def until_named(self, rules: Collection[str], query: StreamingQuery) -> str:
        """What is said of the query once one of the rules has found something, or it is too late."""
        limit = time.monotonic() + MAX_SECONDS
        while time.monotonic() < limit and not self.found() & set(rules):
            time.sleep(0.5)
        return self.said()

    def found(self) -> set[str]:
        queries = json.loads(fetched(f"{self._url}/diagnosis", 60))["queries"]
        return {each["rule"] for query in queries if query["query"] == self.name for each in query["findings"]}

    def said(self) -> str:
        return python("-m", "ledgerops", "diagnose", "--from", self._url, "--query", self.name, timeout=120).stdout


def until(holds: Callable[[], object]) -> None:
    limit = time.monotonic() + MAX_SECONDS
    while not holds() and time.monotonic() < limit:
        time.sleep(0.2)


def schema(lake: Lake) -> str:
    """A column is added to the source while the query runs."""
    query = lake.start(lake.append_to(lake.silver, lake.read()))
    until(lambda: query.lastProgress)
    lake.bronze.add_column()
    return lake.until_named(FAILED, query)


def vacuumed(lake: Lake) -> str:
    """The files that the query reads next are gone."""
    for _ in range(50):
        lake.append(5)
    query = lake.start(lake.append_to(lake.silver, lake.read(maxFilesPerTrigger=1, startingVersion=0)))
    until(lambda: query.lastProgress)
    lake.bronze.vacuum()
    return lake.until_named(FAILED, query)


def conflict(lake: Lake) -> str:
    """Each batch changes rows of a table to which another writer adds rows."""
    silver = DeltaTable(lake.silver)
    lake.append(1000, silver)
    lake.feed(0.2, 10, silver)
    update = f"UPDATE delta.`{lake.silver}` SET amount = amount + 1"
    query = lake.start(lake.read().writeStream.foreachBatch(lambda rows, batch: rows.sparkSession.sql(update)))
    return lake.until_named(FAILED, query)


def full_parquet(lake: Lake) -> str:
    """The disk of the files that are written is full."""
    return _full(lake, "parquet")


def full_delta(lake: Lake) -> str:
    """The disk of the table that is written is full."""
    return _full(lake, "delta")


def _full(lake: Lake, form: str) -> str:
    (lake.folder.parent / "full" / "rest").write_bytes(b"x" * 900_000)  # of 1 MiB
    lake.feed(0.5, 2000)
    rows = lake.read().withColumn("text", F.concat_ws("-", *[F.expr("uuid()")] * 4))
    query = lake.start(lake.append_to(lake.folder.parent / "full" / form, rows, form))
    return lake.until_named(FAILED, query)


def overload(lake: Lake) -> str:
    """1.4 times as many rows are committed as two tasks can process, from the end of the first batch on."""
    slow = lake.read().withColumn("answer", F.expr("reflect('java.lang.Thread', 'sleep', 5L)"))
    query = lake.start(slow.writeStream.format("noop"), seconds=3)
    until(lambda: query.lastProgress)
    lake.feed(0.5, 280)
    return lake.until_named(("input-overload", "falling-behind"), query)


def cap(lake: Lake) -> str:
    """Six files come in each interval, of which a batch may read two. With the number that is advised, it keeps up."""
    lake.feed(0.5, 50)
    query = lake.start(lake.read(maxFilesPerTrigger=2).writeStream.format("noop"), seconds=3)
    said = lake.until_named(("rate-limited",), query)
    advised = re.search(r"raise maxFilesPerTrigger to about (\d+)", said)
    if advised is None:
        return said
    query.stop()
    query = lake.start(lake.read(maxFilesPerTrigger=advised[1]).writeStream.format("noop"), seconds=3)
    caught_up = threading.Event()

    def keeps_up() -> bool:
        end = json.loads(query.lastProgress["sources"][0]["endOffset"]) if query.lastProgress else {}
        if end.get("reservoirVersion", 0) >= lake.bronze.version - 6:
            caught_up.set()
        return caught_up.is_set()

    until(keeps_up)
    return f"{said}\ncaught up with {advised[1]}: {caught_up.is_set()}"


def small_files(lake: Lake) -> str:
    """Each batch writes a file or two for each of many partitions."""
    lake.feed(1.0, 700)
    rows = lake.read().withColumn("part", F.col("id").cast("long") % PARTITIONS)
    query = lake.start(lake.append_to(lake.silver, rows).partitionBy("part"), seconds=2)
    return lake.until_named(("many-small-files",), query)


def healthy(lake: Lake) -> str:
    """An interval that a slow machine keeps too: a commit is 1 s here, and 4 s where others run beside it."""
    lake.feed(2.0, 50)
    query = lake.start(lake.append_to(lake.silver, lake.read()), seconds=15)
    until(lambda: query.lastProgress)
    time.sleep(HEALTHY_SECONDS)
    return lake.said()


FAULTS = (schema, vacuumed, conflict, overload, cap, small_files, healthy)


def main(folder: Path, jars: str, names: Collection[str]) -> None:
    (folder / "eventlog").mkdir(parents=True)
    log = {"spark.eventLog.enabled": "true", "spark.eventLog.dir": f"file://{folder / 'eventlog'}"}
    spark = session(jars, DELTA | log)
    spark.sparkContext.setLogLevel("OFF")
    watch = ledgerops.attach(spark, port=0, recording=str(folder / "recording"))
    faults = (*FAULTS, *((full_parquet, full_delta) if (folder / "full").is_dir() else ()))
    for fault in faults:
        if names and fault.__name__ not in names:
            continue
        began = time.monotonic()
        lake = Lake(spark, folder / fault.__name__, f"http://127.0.0.1:{watch.port}")
        live = fault(lake)
        lake.close()
        for query in spark.streams.active:
            query.stop()
        print(json.dumps({"fault": fault.__name__, "live": live, "seconds": time.monotonic() - began}), flush=True)
    watch.close()
    spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], sys.argv[3:])
