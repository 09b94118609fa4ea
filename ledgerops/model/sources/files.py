"""Folders of files: Spark's own file source, and Auto Loader of Databricks.

Spark's source does not report what waits; the age of the files that it read is in the checkpoint. Auto Loader does.
"""

import re
from typing import Any

from ledgerops.model.sources.delta import BYTES_PER_BATCH, FILES_PER_BATCH, OUTSTANDING, outstanding
from ledgerops.model.sources.kind import Limit, Position, SourceKind, has, numbers

ENTRY = "logOffset"
SOURCE = re.compile(r"(?:FileStream|CloudFiles)Source\[(?:[^\n]*/)?([^/\n]+)/?\]")
SINK = re.compile(r"FileSink\[([^\n]+)\]")
SINK_LOG = "_spark_metadata"


def _entry(offset: Any, source: str) -> Position | None:
    """`{"logOffset": 5}`: the newest entry in the source's log, one for each batch that read files."""
    entry = numbers(offset, ENTRY)
    return Position({(source, "0"): entry[0]}) if entry else None


def _folder(description: str) -> str | None:
    """`FileStreamSource[file:/landing/orders]` -> `orders`."""
    found = SOURCE.fullmatch(description)
    return found[1] if found else None


def sink_log(description: str) -> str | None:
    """The folder in which the sink that a description names keeps its log; None for another sink."""
    found = SINK.fullmatch(description)
    return f"{found[1].rstrip('/')}/{SINK_LOG}" if found else None


def is_sink_log(place: str) -> bool:
    """Whether a table is found by the log of a file sink."""
    return place.endswith(f"/{SINK_LOG}")


def _sequence(offset: Any, source: str) -> Position | None:
    """`{"seqNum", "sourceVersion", "lastBackfillStartTimeMs", ...}`: files in the order of their discovery."""
    return Position() if numbers(offset, "seqNum") else None


FILES = SourceKind(
    "files", "files (Spark's own source)",
    ("FileStreamSource[",),
    _entry, (), tried=True, owns=has(ENTRY), limits=(FILES_PER_BATCH, BYTES_PER_BATCH), logs_files=True,
    folder=_folder,
)  # fmt: skip
AUTO_LOADER = SourceKind(
    "autoloader", "Auto Loader",
    ("CloudFilesSource[",),
    _sequence, ("files", "bytes"), tried=False, owns=has("seqNum", "lastBackfillStartTimeMs"), left=outstanding,
    understood=OUTSTANDING, folder=_folder,
    limits=(Limit("cloudFiles.maxFilesPerTrigger", "files"), Limit("cloudFiles.maxBytesPerTrigger", "bytes")),
)  # fmt: skip
