"""Streams that are read to their end."""

from pathlib import Path
from typing import Any


def to_memory(frame: Any, name: str) -> list[Any]:
    """The rows, from the table in memory of this name."""
    ended(frame.writeStream.format("memory").queryName(name))
    return list(frame.sparkSession.table(name).collect())


def to_files(frame: Any, folder: Path) -> list[Any]:
    """Goes on at the checkpoint in the folder and adds to its Parquet files in `out`; the progress of this run."""
    writer = frame.writeStream.format("parquet").option("checkpointLocation", str(folder / "checkpoint"))
    return ended(writer.option("path", str(folder / "out")))


def ended(writer: Any) -> list[Any]:
    """The progress of a query that works off what there is."""
    query = writer.trigger(availableNow=True).start()
    try:
        assert query.awaitTermination(120), "the query has not ended in time"
        return list(query.recentProgress)
    finally:
        query.stop()
