"""How a view grew between two batches: rows added and removed, and the rows after each batch where they are known."""

from contextlib import suppress
from dataclasses import dataclass
from itertools import accumulate
from typing import Literal

from ledgerops.checkpoint.state_rows import StateReader, spark_errors
from ledgerops.checkpoint.store_files import StoreFiles


@dataclass(frozen=True)
class Growth:
    """From the end of batch `since` to the end of batch `until`."""

    since: int
    until: int
    source: Literal["changes", "snapshots", "counts"]
    rows: tuple[tuple[int, int], ...]  # (batch, rows after it), in order; at least the first and the last batch
    added: int | None = None  # known from changes only
    removed: int | None = None


def growth(reader: StateReader, files: dict[tuple[int, str], StoreFiles], since: int, rows: int) -> Growth:
    """The growth up to the reader's batch, at whose end there are `rows`.

    By the change feed where every batch's changes are in the checkpoint and the view has one; else by the counts of
    keys in RocksDB's snapshots; else by counting the rows of both batches.
    """
    until = reader.batch
    batches = range(since, until + 1)
    # the reader has no changes by side of a join; changes of a list are its elements', without their place in it
    if reader.view.kind not in ("list", "timers") and "joinSide" not in reader.view.options:
        if all(batch + 1 in store.changes for store in files.values() for batch in batches[1:]):
            with suppress(*spark_errors()):  # it does not know the changes, as of a range that was removed at once
                found = _by_changes(reader, since)
                if found.rows[-1] == (until, rows):
                    return found
        if reader.view.kind in ("store", "side"):
            series = _by_snapshots(files, since, until)
            if series and series[0][0] == since and series[-1] == (until, rows):
                return Growth(since, until, "snapshots", series)
    return Growth(since, until, "counts", ((since, reader.total(since)), (until, rows)))


def _by_changes(reader: StateReader, since: int) -> Growth:
    """Replays the changes upon the rows of `since`: a write adds a row only where there was none."""
    from pyspark.sql import Window
    from pyspark.sql import functions as F

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
    rows = tuple(zip(batches, totals, strict=True))
    return Growth(since, reader.batch, "changes", rows, added=sum(came[1:]), removed=sum(went[1:]))


def _by_snapshots(files: dict[tuple[int, str], StoreFiles], since: int, until: int) -> tuple[tuple[int, int], ...]:
    counted = ((at, [each.snapshot_rows(at + 1) for each in files.values()]) for at in range(since, until + 1))
    return tuple((at, sum(filter(None, rows))) for at, rows in counted if None not in rows)
