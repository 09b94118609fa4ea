"""The history of an Iceberg table in memory, with snapshots as Iceberg writes them."""

import json
from typing import Any

from tests.build import T0


class History:
    """Snapshot n is committed at T0 + 10 n; its id says nothing about that. Iceberg's table object, for the agent."""

    def __init__(self) -> None:
        self.snapshots: dict[int, dict[str, Any]] = {}
        self.head: int | None = None
        self.asked: list[int] = []  # snapshots
        self.looked = 0
        self.broken: str | None = None

    def commit(self, *sizes: int, operation: str = "append", by: tuple[str, int] | None = None) -> int:
        """A snapshot with files of such sizes, ten rows each, and its id."""
        number = len(self.snapshots)
        before = self.snapshots.get(self.head or 0)
        files = int(before["summary"]["total-data-files"]) if before is not None else 0
        summary = {"operation": operation, "total-data-files": str(files + len(sizes))}
        if sizes:  # Iceberg leaves out what is 0
            summary |= {"added-data-files": str(len(sizes)), "added-records": str(10 * len(sizes))}
            summary["added-files-size"] = str(sum(sizes))
        if by is not None:
            summary |= {"spark.sql.streaming.queryId": by[0], "spark.sql.streaming.epochId": str(by[1])}
        version, at = (7919 * (number + 1)) % 104729, int((T0 + 10 * number) * 1000)
        self.snapshots[version] = {"snapshot-id": version, "timestamp-ms": at, "summary": summary}
        if self.head is not None:
            self.snapshots[version]["parent-snapshot-id"] = self.head
        self.head = version
        return version

    def newest(self) -> str | None:
        self.looked += 1
        if self.broken is not None:
            raise OSError(self.broken)
        return None if self.head is None else json.dumps(self.snapshots[self.head])

    def oldest(self) -> str | None:
        each = self.head
        while each is not None and (before := self.snapshots[each].get("parent-snapshot-id")) in self.snapshots:
            each = before
        return None if each is None else json.dumps(self.snapshots[each])

    def snapshot(self, version: int) -> str | None:
        self.asked.append(version)
        return json.dumps(self.snapshots[version]) if version in self.snapshots else None
