"""How a view grew between two batches: rows added and removed, and the rows after each batch where they are known."""

from collections.abc import Iterable
from contextlib import suppress
from itertools import accumulate
from typing import Any, Literal

from pyspark.sql import Window
from pyspark.sql import functions as F

from ledgerops.checkpoint.state_rows import SPARK_ERRORS, StateReader
from ledgerops.checkpoint.store_files import StoreFiles

Source = Literal["changes", "snapshots", "counts"]
BatchRows = Iterable[tuple[int, int]]  # (batch, rows after it), in order


def growth(reader: StateReader, files: dict[tuple[int, str], StoreFiles], since: int, rows: int) -> dict[str, Any]:
    """The growth, as the document of the state has it, up to the end of the reader's batch, where there are `rows`.

    By the change feed where every batch's changes are in the checkpoint and the view has one; else by the counts of
    keys in RocksDB's snapshots; else by counting the rows of both batches.
    """
    until = reader.batch
    batches = range(since, until + 1)
    # the reader has no changes by side of a join; changes of a list are its elements', without their place in it
    if reader.view.kind not in ("list", "timers") and "joinSide" not in reader.view.options:
        if all(batch + 1 in store.changes for store in files.values() for batch in batches[1:]):
            with suppress(*SPARK_ERRORS):  # it does not know the changes, as of a range that was removed at once
                found = _by_changes(reader, since)
                if found["batches"][-1]["rows"] == rows:
                    return found
        if reader.view.kind in ("store", "side"):
            series = _by_snapshots(files, since, until)
            if series and series[0][0] == since and series[-1] == (until, rows):
                return _document("snapshots", series)
    return _document("counts", [(since, reader.total(since)), (until, rows)])


def _document(source: Source, rows: BatchRows, added: int | None = None, removed: int | None = None) -> dict[str, Any]:
    """`rows` are at least those after the first and the last batch."""
    batches = [{"batch": batch, "rows": number} for batch, number in rows]
    ends = {"since": batches[0]["batch"], "until": batches[-1]["batch"]}
    return {**ends, "source": source, "added": added, "removed": removed, "batches": batches}


def _by_changes(reader: StateReader, since: int) -> dict[str, Any]:
    """Replays the changes upon the rows of `since`: a write adds a row only where there was none."""
    before = reader.frame(since).select(
        reader.identity().alias("row"), F.lit(since).alias("batch"), F.lit(True).alias("there"), F.lit(-1).alias("at")
    )
    # a batch may write a row several times: Spark reads a partition's changes in one task and in their order
    after = reader.changes(since + 1).select(
        reader.identity().alias("row"),
        F.col("batch_id").alias("batch"),
        (F.col("change_type") != "delete").alias("there"),
        F.monotonically_increasing_id().alias("at"),
    )
    was = F.coalesce(F.lag("there").over(Window.partitionBy("row").orderBy("at")), F.lit(False))
    added, removed = F.col("there") & ~F.col("was"), ~F.col("there") & F.col("was")
    steps = before.union(after).withColumn("was", was).groupBy("batch")
    found = steps.agg(F.count_if(added).alias("added"), F.count_if(removed).alias("removed")).collect()
    of = {row["batch"]: (row["added"], row["removed"]) for row in found}
    batches = range(since, reader.batch + 1)
    came, went = zip(*(of.get(batch, (0, 0)) for batch in batches), strict=True)
    totals = accumulate(more - less for more, less in zip(came, went, strict=True))
    return _document("changes", zip(batches, totals, strict=True), added=sum(came[1:]), removed=sum(went[1:]))


def _by_snapshots(files: dict[tuple[int, str], StoreFiles], since: int, until: int) -> tuple[tuple[int, int], ...]:
    counted = ((at, [each.snapshot_rows(at + 1) for each in files.values()]) for at in range(since, until + 1))
    return tuple((at, sum(filter(None, rows))) for at, rows in counted if None not in rows)
