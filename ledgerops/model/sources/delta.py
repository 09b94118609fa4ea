"""Delta tables, read by DeltaSource.

An offset names the version that is read next: all files of the versions before it were read, and of the version itself
those up to `index`. Open source Delta reports neither `latestOffset` nor metrics: the head is in the
table's `_delta_log`, which the agent reads. Databricks reports metrics.
"""

import re
from collections.abc import Callable
from typing import Any

from ledgerops.model.records import Left, TablePosition
from ledgerops.model.sources.kind import Limit, Position, Reported, SourceKind, has, numbers, whole

FOLDER = re.compile(r"Delta(?:Source|Sink)\[([^\n]+)\]")
FILES_PER_BATCH = Limit("maxFilesPerTrigger", "files")
BYTES_PER_BATCH = Limit("maxBytesPerTrigger", "bytes")
OUTSTANDING = frozenset(("numFilesOutstanding", "numBytesOutstanding"))
DATABRICKS_CLUSTER = "spark.databricks.clusterUsageTags.clusterId"  # its runtime sets it, and nothing else does
BEFORE_FIRST = -1  # index: no file of the version was read; -100, -20 and -19 occur with changes of the schema


def has_delta(setting: Callable[[str], str | None]) -> bool:
    """Whether a session that has such settings can write Delta tables in SQL, in a function of `foreachBatch` too.
    Databricks' runtime has Delta without the extension; it names its cluster in the settings."""
    return "io.delta." in (setting("spark.sql.extensions") or "") or setting(DATABRICKS_CLUSTER) is not None


def _position(offset: Any, source: str) -> Position | None:
    """`{"reservoirId", "reservoirVersion", "index", "isStartingVersion"}`; None without a version and an index."""
    place = numbers(offset, "reservoirVersion", "index")
    if place is None:
        return None
    initial = offset.get("isStartingVersion") is True
    return Position(table=TablePosition(place[0], max(BEFORE_FIRST, place[1]), initial))


def outstanding(metrics: Reported, offset: Any) -> Left:
    """What Databricks reports of Delta and of Auto Loader."""
    return Left(files=whole(metrics, "numFilesOutstanding"), bytes=whole(metrics, "numBytesOutstanding"))


def _label(description: str) -> str | None:
    """`DeltaSource[s3://lake/bronze/orders]` -> `orders`."""
    return (folder(description) or "").rstrip("/").rsplit("/", 1)[-1] or None


def folder(description: str) -> str | None:
    """The folder of the table that a DeltaSource or DeltaSink names, as Hadoop's file system takes it."""
    found = FOLDER.fullmatch(description)
    return found[1] if found else None


DELTA = SourceKind(
    "delta", "Delta",
    ("DeltaSource[",),
    _position, ("versions", "files", "bytes"), tried=True, owns=has("reservoirVersion"), left=outstanding,
    understood=OUTSTANDING, label=_label, table=folder, limits=(FILES_PER_BATCH, BYTES_PER_BATCH),
)  # fmt: skip
