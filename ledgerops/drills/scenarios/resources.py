"""Memory and CPU that the query lacks, and an observer that lacks its source."""

from typing import Any

import psutil
from pyspark import StorageLevel
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from ledgerops.drills.applications.outside import fill_heap, now
from ledgerops.drills.harness.actions import cores_taken
from ledgerops.drills.harness.case import LATE_SYMPTOMS, scripted, steady
from ledgerops.drills.harness.effects import at_once, batches_outlast
from ledgerops.drills.harness.injector import Injector
from ledgerops.drills.harness.proxy import Proxy
from ledgerops.drills.harness.target_app import TargetApp

# R1, GC pressure: from the onset, a cache in the driver occupies most of its heap, and batches wait for GC.
FREE_HEAP_MIB = 60  # that the cache leaves


def start_gc_pressure(app: TargetApp) -> None:
    pieces: list[Any] = []

    def turn() -> None:
        """Fills all of the heap but `FREE_HEAP_MIB` MiB while the control file says so, then releases it."""
        if not now("cache"):
            pieces.clear()
        elif not pieces:
            fill_heap(app.spark, FREE_HEAP_MIB, pieces)

    app.job("dedup_transactions", steady(11, 400))
    app.each_turn.append(turn)


# R2, memory spill: from the onset, a cache takes the memory in which batches sort rows, so they sort on disk.
COPIES_PER_ROW = 1800
CACHE_COLUMNS = 16  # of random numbers, which cannot be compressed, in each row of the cache
# more than there is room for; one task makes a slice, so that the query keeps a core
SLICES, ROWS_PER_SLICE = 20, 200_000


def start_memory_spill(app: TargetApp) -> None:
    in_memory = StorageLevel(useDisk=False, useMemory=True, useOffHeap=False, deserialized=True)
    held: list[DataFrame] = []

    def turn() -> None:
        """Takes the memory while the control file says so, then releases it."""
        wanted = bool(now("cache"))
        if wanted and len(held) < SLICES:
            numbers = [
                F.rand(CACHE_COLUMNS * len(held) + column).alias(f"c{column}") for column in range(CACHE_COLUMNS)
            ]
            held.append(app.spark.range(0, ROWS_PER_SLICE, 1, 1).select(*numbers).persist(in_memory))
            held[-1].count()
        while held and not wanted:
            held.pop().unpersist(blocking=True)

    def write(rows: DataFrame, batch: int) -> None:
        wide = rows.withColumn("copy", F.explode(F.sequence(F.lit(1), F.lit(COPIES_PER_ROW))))
        wide = wide.withColumn("order", F.hash("transaction_id", "copy"))
        wide.repartition(2, "order").sortWithinPartitions("order").write.format("noop").mode("overwrite").save()

    app.query(app.rows(steady(11, 300)), write=write)
    app.each_turn.append(turn)


PROCESSES_PER_CORE = 10  # of others: the driver, with two or three running threads, keeps a tenth


def prepare_spark_ui(injector: Injector) -> None:
    """Puts a proxy before the Spark UI, which reports tasks and executors."""
    injector.ui = injector.opened.enter_context(Proxy(injector.ui_port))
    injector.conf["spark.ui.port"] = str(injector.ui_port)
    injector.environ["LEDGEROPS_UI_URL"] = f"http://127.0.0.1:{injector.ui.port}"


DRILLS = (
    scripted(
        name="gc-pressure", id="R1", text="a cache occupies nearly all of the heap",
        start=start_gc_pressure, fault={"cache": True}, effect=batches_outlast(2.0), seconds=135.0,
        conf={"spark.driver.memory": "600m"}, expected=("gc-pressure",), component=("executor",), remedy="memory",
        may=(*LATE_SYMPTOMS, "cpu-saturated"),  # the collector's threads take the cores, too
    ),
    scripted(
        name="memory-spill", id="R2", text="a cache takes the memory in which each batch sorts its rows",
        start=start_memory_spill, fault={"cache": True}, effect=batches_outlast(2.0), heavy=True,
        expected=("memory-spill",), component=("stage",), remedy="unpersist", may=LATE_SYMPTOMS,
        conf={
            # cached blocks keep nearly all of the memory that they once have
            "spark.memory.storageFraction": "0.98",
            # a spill is compressed hard, as on a machine with a slow disk; a shuffle is not
            "spark.shuffle.compress": "false",
            "spark.io.compression.codec": "zstd",
            "spark.io.compression.zstd.level": "9",
        },
    ),
    scripted(
        name="cpu-saturated", id="R3", text="other processes use every core of the machine",
        start=lambda app: app.job("dedup_transactions", steady(26, 500)),
        breaks=lambda injector: cores_taken(injector, PROCESSES_PER_CORE * (psutil.cpu_count() or 1)),
        effect=batches_outlast(2.0), heavy=True,
        expected=("cpu-saturated",), component=("host=other processes",), remedy="processes",
        may=(*LATE_SYMPTOMS, "observer-degraded", "checkpoint-slow"),
    ),
    # the query is healthy; a collector that failed rests for a while before it is trusted again
    scripted(
        name="observer-degraded", id="F21b", text="the Spark UI stops responding while the query is healthy",
        prepare=prepare_spark_ui, start=lambda app: app.job("dedup_transactions", steady(27, 200)),
        breaks=lambda injector: injector.ui.with_toxics(down=True), effect=at_once, seconds=135.0,
        expected=("observer-degraded",), component=("observer",), remedy="UI",
    ),
)  # fmt: skip
