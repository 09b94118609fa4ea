"""What these applications share: their options, their rows, and the outside services that they call.

How the services behave at the moment is read from the JSON file that the variable OUTSIDE names.
"""

import argparse
import json
import os
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

FIELDS = "id STRING, key STRING, amount DOUBLE, event_time TIMESTAMP"
_known = {"at": 0.0, "values": {}}


def now(name: str, default: Any = 0.0) -> Any:
    """The present value of something outside, such as the seconds that the warehouse takes for a write."""
    if time.monotonic() - _known["at"] > 0.2:
        try:
            _known["values"] = json.loads(Path(os.environ["OUTSIDE"]).read_text("utf-8"))
        except (OSError, ValueError, KeyError):
            pass
        _known["at"] = time.monotonic()
    return _known["values"].get(name, default)


def application(name):
    """The Spark session of an application, whose Python workers can import this module, and its options."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--source", choices=("rate", "files", "kafka", "delta"), default="rate")
    parser.add_argument("--input", default="input", help="folder, topic or table")
    parser.add_argument("--second", default="second", help="folder or topic of the second input")
    parser.add_argument("--servers", default="")
    parser.add_argument("--start", default="latest", help="first offsets of a topic, first version of a table")
    parser.add_argument("--rate", type=int, default=100, help="rows a second of the rate source")
    parser.add_argument("--keys", type=int, default=50)
    parser.add_argument("--partitions", type=int, default=2)
    parser.add_argument("--shuffle", type=int, default=2)
    parser.add_argument("--repartition", type=int, default=0, help="tasks among which the rows are divided")
    parser.add_argument("--cap", type=int, default=0, help="files or offsets a batch")
    parser.add_argument(
        "--trigger", default="", help="'2 seconds'; 'once' reads what is there; empty runs back to back"
    )
    parser.add_argument("--delay", default="10 seconds", help="of the watermark")
    parser.add_argument("--wait", type=float, default=0.0, help="milliseconds that each row waits for an answer")
    parser.add_argument("--name", default="")
    parser.add_argument("--checkpoint", default="checkpoint")
    parser.add_argument("--output", default="output")
    parser.add_argument("--format", default="parquet", help="of the tables that are written")
    parser.add_argument("--parts", type=int, default=0, help="values of the column by which a table is partitioned")
    parser.add_argument("--merge", action="store_true", help="merge rows into a Delta table by their key")
    parser.add_argument("--gold", default="", help="a table that a second query writes, from that of the first")
    parser.add_argument("--restart", action="store_true", help="start a query again when it fails")
    opts = parser.parse_args()
    spark = SparkSession.builder.appName(name).config("spark.sql.shuffle.partitions", str(opts.shuffle)).getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    spark.sparkContext.addPyFile(__file__)
    return spark, opts


def rows(spark, opts, place=None):
    """A stream of id, key, amount and event_time."""
    found = _read(spark, opts, place or opts.input)
    return found.repartition(opts.repartition) if opts.repartition else found


def _read(spark, opts, place):
    if opts.source == "rate":
        reader = spark.readStream.format("rate").option("rowsPerSecond", opts.rate)
        value = F.col("value")
        return (
            reader.option("numPartitions", opts.partitions)
            .load()
            .select(
                value.cast("string").alias("id"),
                (value % opts.keys).cast("string").alias("key"),
                (value % 997 / 10.0).alias("amount"),
                F.col("timestamp").alias("event_time"),
            )
        )
    reader, limit = spark.readStream, "maxFilesPerTrigger"
    if opts.source == "kafka":
        limit = "maxOffsetsPerTrigger"
        reader = reader.format("kafka").option("kafka.bootstrap.servers", opts.servers)
        reader = reader.option("subscribe", place).option("startingOffsets", opts.start)
    if opts.cap:
        reader = reader.option(limit, opts.cap)
    if opts.source == "kafka":
        return reader.load().select(F.from_json(F.col("value").cast("string"), FIELDS).alias("v")).select("v.*")
    if opts.source == "files":
        return reader.schema(FIELDS).json(place)
    if opts.start == "latest":
        reader = reader.option("startingVersion", "latest")
    return reader.format("delta").load(place)


def deliver(frame, batch):
    """Writes a batch to a service that is slow, stalls, blocks or fails as it is told to."""
    time.sleep(now("sink"))
    if now("stall") and batch % int(now("every", 4)) == 0:
        time.sleep(now("stall"))
    while now("block"):
        time.sleep(0.2)
    if now("fail"):
        raise OSError(str(now("fail")))
    frame.write.format("noop").mode("overwrite").save()


def total(key: tuple[str, ...], parts: Iterable[Any], state: Any) -> Iterator[Any]:
    """The number of rows of a key so far, in Python state, after `row` seconds for each new row."""
    import pandas as pd

    count = sum(len(part) for part in parts)
    time.sleep(now("row") * count)
    seen = count + (state.get[0] if state.exists else 0)
    state.update((seen,))
    yield pd.DataFrame({"key": [key[0]], "n": [seen]})


def waiting(rows: DataFrame, milliseconds: float) -> DataFrame:
    """Each row with an answer for which its task waited in the JVM, equally long on any machine."""
    whole, part = divmod(round(milliseconds * 1_000_000), 1_000_000)
    return rows.withColumn("answer", F.expr(f"reflect('java.lang.Thread', 'sleep', {whole}L, {part})"))


def ask(parts: Iterator[Any]) -> Iterator[Any]:
    """Passes the rows on; partition 1 first waits for `region` seconds."""
    from pyspark import TaskContext

    if TaskContext.get().partitionId() == 1:
        time.sleep(now("region"))
    yield from parts


def compute(parts: Iterator[Any]) -> Iterator[Any]:
    """Passes the rows on after `burn` seconds of computing in each partition."""
    until = time.monotonic() + now("burn")
    while time.monotonic() < until:
        sum(range(1000))
    yield from parts


def fill_heap(spark: SparkSession, left: float, pieces: list[Any]) -> None:
    """Adds texts of the JVM to `pieces` until only `left` MiB of its heap are free; many small ones take the collector
    long."""
    jvm = spark.sparkContext._jvm
    comma, text = jvm.java.util.regex.Pattern.compile(","), "text," * 250_000
    machine = jvm.java.lang.Runtime.getRuntime()
    while True:
        jvm.java.lang.System.gc()
        if machine.maxMemory() - machine.totalMemory() + machine.freeMemory() <= left * 2**20:
            return
        pieces.append(comma.split(text))


def start(writer, opts, name=None):
    """Starts a query with its name, checkpoint and trigger."""
    name = name or opts.name
    checkpoint = f"{opts.checkpoint}/{name or 'unnamed'}"
    writer = writer.option("checkpointLocation", checkpoint)
    if name:
        writer = writer.queryName(name)
        # a pool of its own; without spark.scheduler.mode=FAIR there is one for all
        writer._spark.sparkContext.setLocalProperty("spark.scheduler.pool", name)
    if opts.trigger == "once":
        writer = writer.trigger(availableNow=True)
    elif opts.trigger:
        writer = writer.trigger(processingTime=opts.trigger)
    return writer.start()


def serve(spark, opts, *begins):
    """Runs queries until the file `stop` appears. Notes when one fails; starts it again where that is wanted."""
    queries = {begin: begin() for begin in begins}
    while not Path("stop").exists():
        for begin, query in list(queries.items()):
            if query.isActive:
                if now("pause"):
                    query.stop()
                continue
            error = query.exception()
            if error is not None:
                with Path("failures.jsonl").open("a") as log:
                    log.write(json.dumps({"at": time.time(), "error": str(error)[:300]}) + "\n")
            if (error is not None and opts.restart) or (error is None and now("resume")):
                time.sleep(1.0)
                queries[begin] = begin()
            else:
                del queries[begin]
                if error is None and not now("over"):
                    queries[begin] = query  # it may be resumed
        time.sleep(0.2)
    for query in spark.streams.active:
        try:
            query.stop()
        except Exception as error:
            print(error)
    spark.stop()
