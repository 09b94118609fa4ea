"""Folders of files: Spark's own file source, and Auto Loader of Databricks.

Spark's source does not report what waits; the age of the files that it read is in the checkpoint. Auto Loader does.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ledgerops.model.offsets import is_whole
from ledgerops.model.sources.delta import OUTSTANDING, outstanding
from ledgerops.model.sources.kind import Limit, Position, SourceKind

ENTRY = "logOffset"
FILES_PER_BATCH = Limit("maxFilesPerTrigger", "files")
BYTES_PER_BATCH = Limit("maxBytesPerTrigger", "bytes")


def _entry(offset: Any, source: str) -> Position | None:
    """`{"logOffset": 5}`: the newest entry in the source's log, one for each batch that read files."""
    if not isinstance(offset, Mapping) or not is_whole(offset.get(ENTRY)):
        return None
    return Position({(source, "0"): offset[ENTRY]})


def _owns_sequence(offset: Any) -> bool:
    return isinstance(offset, Mapping) and "seqNum" in offset and "lastBackfillStartTimeMs" in offset


def _sequence(offset: Any, source: str) -> Position | None:
    """`{"seqNum", "sourceVersion", "lastBackfillStartTimeMs", ...}`: files in the order of their discovery."""
    if not isinstance(offset, Mapping) or not is_whole(offset.get("seqNum")):
        return None
    return Position()


FILES = SourceKind(
    "files",
    "files (Spark's own source)",
    ("FileStreamSource[",),
    _entry,
    (),
    tried=True,
    owns=lambda offset: isinstance(offset, Mapping) and offset.keys() == {ENTRY},
    limits=(FILES_PER_BATCH, BYTES_PER_BATCH),
    logs_files=True,
)
AUTO_LOADER = SourceKind(
    "autoloader",
    "Auto Loader",
    ("CloudFilesSource[",),
    _sequence,
    ("files", "bytes"),
    tried=False,
    owns=_owns_sequence,
    left=outstanding,
    understood=OUTSTANDING,
    limits=(Limit("cloudFiles.maxFilesPerTrigger", "files"), Limit("cloudFiles.maxBytesPerTrigger", "bytes")),
)
