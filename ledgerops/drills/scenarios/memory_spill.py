"""R2, memory spill: from the onset, a cache takes the memory in which batches sort rows, so they sort on disk."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ledgerops.drills.harness.drill import LATE_SYMPTOMS, Drill, cause
from ledgerops.drills.harness.effects import batches_outlast
from ledgerops.drills.harness.target_app import TargetApp

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

COPIES = 1800  # of each row
COLUMNS = 16  # of random numbers, which cannot be compressed, in each row of the cache
SLICES, ROWS = 20, 200_000  # more than there is room for; each by one task, so that the query keeps a core
PLAN = "{seed: 11, start: now, phases: [{shape: constant, rate: 300}]}"


def start(app: TargetApp) -> None:
    from pyspark import StorageLevel
    from pyspark.sql import functions as F

    in_memory = StorageLevel(useDisk=False, useMemory=True, useOffHeap=False, deserialized=True)
    held: list[DataFrame] = []

    def turn() -> None:
        """Takes the memory while the control file says so, then releases it."""
        wanted = bool(app.control("cache"))
        if wanted and len(held) < SLICES:
            numbers = [F.rand(COLUMNS * len(held) + column).alias(f"c{column}") for column in range(COLUMNS)]
            held.append(app.spark.range(0, ROWS, 1, 1).select(*numbers).persist(in_memory))
            held[-1].count()
        while held and not wanted:
            held.pop().unpersist(blocking=True)

    def write(rows: DataFrame, batch: int) -> None:
        wide = rows.withColumn("copy", F.explode(F.sequence(F.lit(1), F.lit(COPIES))))
        wide = wide.withColumn("order", F.hash("transaction_id", "copy"))
        wide.repartition(2, "order").sortWithinPartitions("order").write.format("noop").mode("overwrite").save()

    app.query(app.rows(PLAN), write=write)
    app.each_turn.append(turn)


DRILL = Drill(
    name="memory-spill",
    id="R2",
    summary="a cache takes the memory in which each batch sorts its rows",
    start=start,
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
