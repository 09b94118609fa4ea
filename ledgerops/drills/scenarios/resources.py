"""Memory and CPU that the query lacks, and an observer that lacks its source."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING, Any

import psutil

from ledgerops.drills.harness.drill import LATE_SYMPTOMS, Drill, cause
from ledgerops.drills.harness.effects import at_once, batches_outlast
from ledgerops.drills.harness.injector import Injector
from ledgerops.drills.harness.proxy import Proxy
from ledgerops.drills.harness.target_app import TargetApp
from ledgerops.servers.process import free_port

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# R1, GC pressure: from the onset, a cache in the driver occupies most of its heap, and batches wait for GC.
FREE_HEAP_MIB = 60  # that the cache leaves
PIECE_TEXTS = 250_000  # texts of a few letters; many small things take the collector long
GC_PRESSURE_PLAN = "{seed: 11, start: now, phases: [{shape: constant, rate: 400}]}"


class Cache:
    """A cache in the JVM that occupies all of the heap but `FREE_HEAP_MIB` MiB while the control file says so."""

    def __init__(self, app: TargetApp) -> None:
        self._app = app
        self._pieces: list[Any] | None = None

    def turn(self) -> None:
        """Fills or releases the cache if the control file asks for another state than the present one."""
        wanted = bool(self._app.control("cache"))
        if wanted == (self._pieces is not None):
            return
        jvm: Any = self._app.spark.sparkContext._jvm
        if not wanted:
            self._pieces = None
            return
        self._pieces = []
        comma, text = jvm.java.util.regex.Pattern.compile(","), "text," * PIECE_TEXTS
        while self._free(jvm) > FREE_HEAP_MIB * 2**20:
            self._pieces.append(comma.split(text))

    @staticmethod
    def _free(jvm: Any) -> int:
        """Bytes of the heap that nothing lives in."""
        jvm.java.lang.System.gc()
        machine = jvm.java.lang.Runtime.getRuntime()
        return int(machine.maxMemory() - machine.totalMemory() + machine.freeMemory())


def start_gc_pressure(app: TargetApp) -> None:
    app.job("dedup_transactions", {"transactions": app.rows(GC_PRESSURE_PLAN)})
    app.each_turn.append(Cache(app).turn)


GC_PRESSURE = Drill(
    name="gc-pressure",
    id="R1",
    summary="a cache occupies nearly all of the heap",
    start=start_gc_pressure,
    control={"cache": True},
    effect=batches_outlast(2.0),
    truth=cause(
        "gc-pressure",
        component=("executor",),
        remedy="memory",
        # the collector's threads take the cores, too
        may=(*LATE_SYMPTOMS, "cpu-saturated"),
    ),
    recovery_seconds=45.0,
    conf=(("spark.driver.memory", "600m"),),
)


# R2, memory spill: from the onset, a cache takes the memory in which batches sort rows, so they sort on disk.
COPIES_PER_ROW = 1800
CACHE_COLUMNS = 16  # of random numbers, which cannot be compressed, in each row of the cache
# more than there is room for; one task makes a slice, so that the query keeps a core
SLICES, ROWS_PER_SLICE = 20, 200_000
MEMORY_SPILL_PLAN = "{seed: 11, start: now, phases: [{shape: constant, rate: 300}]}"


def start_memory_spill(app: TargetApp) -> None:
    from pyspark import StorageLevel
    from pyspark.sql import functions as F

    in_memory = StorageLevel(useDisk=False, useMemory=True, useOffHeap=False, deserialized=True)
    held: list[DataFrame] = []

    def turn() -> None:
        """Takes the memory while the control file says so, then releases it."""
        wanted = bool(app.control("cache"))
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

    app.query(app.rows(MEMORY_SPILL_PLAN), write=write)
    app.each_turn.append(turn)


MEMORY_SPILL = Drill(
    name="memory-spill",
    id="R2",
    summary="a cache takes the memory in which each batch sorts its rows",
    start=start_memory_spill,
    control={"cache": True},
    effect=batches_outlast(2.0),
    truth=cause("memory-spill", component=("stage",), remedy="memory", may=LATE_SYMPTOMS),
    heavy=True,
    conf=(
        # cached blocks keep nearly all of the memory that they once have
        ("spark.memory.storageFraction", "0.98"),
        # a spill is compressed hard, as on a machine with a slow disk; a shuffle is not
        ("spark.shuffle.compress", "false"),
        ("spark.io.compression.codec", "zstd"),
        ("spark.io.compression.zstd.level", "9"),
    ),
)


# R3, CPU saturated: processes that do not belong to the driver use every core of its machine.
CPU_SATURATED_PLAN = "{seed: 26, start: now, phases: [{shape: constant, rate: 500}]}"
BUSY = "import os\nparent = os.getppid()\nwhile os.getppid() == parent: sum(range(100_000))"
PROCESSES_PER_CORE = 10  # the driver, with two or three running threads, keeps a tenth


def inject_cpu_saturated(injector: Injector) -> None:
    busy = [
        subprocess.Popen([sys.executable, "-c", BUSY]) for _ in range(PROCESSES_PER_CORE * (psutil.cpu_count() or 1))
    ]
    injector.held["busy"] = busy
    injector.closing.append(lambda: kill_all(busy))


def kill_all(processes: list[subprocess.Popen[bytes]]) -> None:
    """Kills the processes and waits for their end."""
    for process in processes:
        process.kill()
        process.wait()


CPU_SATURATED = Drill(
    name="cpu-saturated",
    id="R3",
    summary="other processes use every core of the machine",
    start=lambda app: app.job("dedup_transactions", {"transactions": app.rows(CPU_SATURATED_PLAN)}),
    inject=inject_cpu_saturated,
    repair=lambda injector: kill_all(injector.held["busy"]),
    effect=batches_outlast(2.0),
    heavy=True,
    truth=cause(
        "cpu-saturated",
        component=("host=other processes",),
        remedy="processes",
        may=(*LATE_SYMPTOMS, "observer-degraded", "checkpoint-slow"),
    ),
)


# F21b, observer degraded: the Spark UI, which reports tasks and executors, stops responding. The query is healthy.
OBSERVER_DEGRADED_PLAN = "{seed: 27, start: now, phases: [{shape: constant, rate: 200}]}"


def prepare_observer_degraded(injector: Injector) -> dict[str, Any]:
    target = free_port()
    proxy = Proxy(target)
    proxy.__enter__()
    injector.closing.append(lambda: proxy.__exit__())
    injector.held["proxy"] = proxy
    return {"conf": {"spark.ui.port": str(target)}, "watch": {"ui_url": f"http://127.0.0.1:{proxy.port}"}}


OBSERVER_DEGRADED = Drill(
    name="observer-degraded",
    id="F21b",
    summary="the Spark UI stops responding while the query is healthy",
    prepare=prepare_observer_degraded,
    start=lambda app: app.job("dedup_transactions", {"transactions": app.rows(OBSERVER_DEGRADED_PLAN)}),
    inject=lambda injector: injector.held["proxy"].set(down=True),
    repair=lambda injector: injector.held["proxy"].heal(),
    effect=at_once,
    recovery_seconds=45.0,  # a collector that failed rests for a while before it is trusted again
    truth=cause("observer-degraded", component=("observer",), remedy="UI"),
)


DRILLS = (GC_PRESSURE, MEMORY_SPILL, CPU_SATURATED, OBSERVER_DEGRADED)
