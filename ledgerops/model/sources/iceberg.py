"""Iceberg tables. An offset is a snapshot and a place among its files.

Snapshot ids are random and cannot be subtracted. The source reports no head, so what is left is not known.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ledgerops.model.offsets import is_whole
from ledgerops.model.records import TablePosition
from ledgerops.model.sources.kind import Limit, Position, SourceKind


def _owns(offset: Any) -> bool:
    return isinstance(offset, Mapping) and "snapshot_id" in offset and "scan_all_files" in offset


def _position(offset: Any, source: str) -> Position | None:
    """`{"version", "snapshot_id", "position", "scan_all_files"}`; None without an id and a position."""
    if not _owns(offset) or not (is_whole(offset["snapshot_id"]) and is_whole(offset.get("position"))):
        return None
    return Position(table=TablePosition(offset["snapshot_id"], offset["position"], offset["scan_all_files"] is True))


ICEBERG = SourceKind(
    "iceberg",
    "Iceberg",
    ("org.apache.iceberg.spark.source.",),
    _position,
    (),
    tried=False,
    owns=_owns,
    label=lambda description: "iceberg",
    limits=(
        Limit("streaming-max-files-per-micro-batch", "files"),
        Limit("streaming-max-rows-per-micro-batch", "rows"),
    ),
)
