"""Iceberg tables. An offset is a snapshot and the file of it that is read next.

Snapshot ids are random and cannot be subtracted, and the source reports no head: the agent counts along the ancestry of
the snapshots, in the table's own metadata.
"""

from typing import Any

from ledgerops.model.records import TablePosition
from ledgerops.model.sources.kind import Limit, Position, SourceKind, has, numbers

ICEBERG_CLASSES = "org.apache.iceberg."  # how Spark's description of a source begins; a sink is described by its name
SINK = "Iceberg["


def iceberg_sink(name: str) -> str:
    """How the plan tells of an Iceberg table that a query writes."""
    return f"{SINK}{name}]"


def is_iceberg(table: str) -> bool:
    """Whether what a table is found by is that of an Iceberg table."""
    return table.startswith((ICEBERG_CLASSES, SINK))


def _position(offset: Any, source: str) -> Position | None:
    """`{"version", "snapshot_id", "position", "scan_all_files"}`; None without an id and a position."""
    place = numbers(offset, "snapshot_id", "position")
    if place is None:
        return None
    return Position(table=TablePosition(place[0], place[1], offset.get("scan_all_files") is True))


ICEBERG = SourceKind(
    "iceberg", "Iceberg", (f"{ICEBERG_CLASSES}spark.source.",), _position, ("versions", "files", "bytes", "rows"),
    tried=True, owns=has("snapshot_id", "scan_all_files"), label=lambda description: "iceberg",
    table=lambda description: description,
    limits=(
        Limit("streaming-max-files-per-micro-batch", "files"), Limit("streaming-max-rows-per-micro-batch", "rows"),
    ),
)  # fmt: skip
