"""One snapshot of an Iceberg table, from the JSON that Iceberg itself writes of it."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ledgerops.model.delta_log import whole_number
from ledgerops.model.records import TableCommit

APPEND = "append"  # the operation whose files a stream reads: it skips replaced, deleted and overwritten ones, or fails


@dataclass(frozen=True, slots=True)
class IcebergSnapshot:
    """What one snapshot added. Ids are random: only `parent` says which came before."""

    version: int
    parent: int | None
    at: float  # when it was committed, in epoch seconds
    appends: bool
    rows: int | None
    files: int | None
    bytes: int | None
    all_files: int | None  # of the table, as of this snapshot
    query_id: str | None  # of the streaming query that wrote it
    batch_id: int | None

    def written(self) -> TableCommit:
        """The snapshot as a commit to a sink, of which Spark itself reports the rows."""
        return TableCommit(self.version, self.at, self.batch_id, None, self.files, self.bytes)


def parse_snapshot(text: str) -> IcebergSnapshot:
    """A snapshot from Iceberg's JSON. Raises ValueError for anything else."""
    try:
        data = json.loads(text)
        version, parent, at = data["snapshot-id"], data.get("parent-snapshot-id"), data["timestamp-ms"] / 1000
        summary: Mapping[str, Any] = data.get("summary") or {}
        appends = summary.get("operation") == APPEND
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"not a snapshot: {error!r}") from None
    query = summary.get("spark.sql.streaming.queryId")
    return IcebergSnapshot(
        version, parent, at, appends, _added(summary, "added-records"), _added(summary, "added-data-files"),
        _added(summary, "added-files-size"), whole_number(summary.get("total-data-files")),
        str(query) if query else None, whole_number(summary.get("spark.sql.streaming.epochId")),
    )  # fmt: skip


def _added(summary: Mapping[str, Any], name: str) -> int | None:
    """Iceberg leaves out what is 0."""
    return whole_number(summary.get(name, "0")) if summary else None
