"""One snapshot of an Iceberg table, from the JSON that Iceberg itself writes of it."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ledgerops.model.delta_log import whole_number
from ledgerops.model.records import LoggedCommit, TableCommit

APPEND = "append"  # the operation whose files a stream reads: it skips replaced, deleted and overwritten ones, or fails


@dataclass(frozen=True, slots=True)
class IcebergSnapshot(LoggedCommit):
    """What one snapshot added; its version is its id. Ids are random: only `parent` says which came before."""

    parent: int | None
    appends: bool
    all_files: int | None  # of the table, as of this snapshot

    def written(self) -> TableCommit:
        """Without the rows: of this sink Spark itself reports them."""
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
        version=version, at=at, batch_id=whole_number(summary.get("spark.sql.streaming.epochId")),
        rows=_added(summary, "added-records"), files=_added(summary, "added-data-files"),
        bytes=_added(summary, "added-files-size"), query_id=str(query) if query else None, parent=parent,
        appends=appends, all_files=whole_number(summary.get("total-data-files")),
    )  # fmt: skip


def _added(summary: Mapping[str, Any], name: str) -> int | None:
    """Iceberg leaves out what is 0."""
    return whole_number(summary.get(name, "0")) if summary else None
