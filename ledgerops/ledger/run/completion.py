"""Whether a run has read all that there was when it began, according to its checkpoints."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from pyspark.sql.streaming import StreamingQuery

from ledgerops.checkpoint.batch_log import BatchLog, Place
from ledgerops.ledger.sinks.delta_files import newest_version

NOTHING_NEW = "Waiting for data to arrive"  # what a query's status says when a trigger has found nothing to read


class CatchUpCheck:
    """`heads` are where the topics or files ended at the start; empty for a landing folder, where no file may be left.

    A query has caught up when a batch has reached the heads, and another one or a trigger without input has followed: a
    watermark that the last rows moved closes its windows only then. `tables` are, by query, the Delta tables that some
    read, each written by another of the queries: these have caught up with their newest version once that query has.
    """

    def __init__(
        self,
        queries: Sequence[StreamingQuery],
        checkpoints: Path,
        heads: Mapping[Place, int],
        tables: Mapping[str, Path] = MappingProxyType({}),
    ) -> None:
        self._queries, self._checkpoints, self._heads, self._tables = queries, checkpoints, heads, tables
        self._reached: dict[str, int] = {}  # by query, the batch that reached the heads
        self._caught_up: set[str] = set()

    def done(self) -> bool:
        """Whether every query has caught up, or failed and will read no more."""
        for query in self._queries:
            name = str(query.name)
            if name not in self._caught_up and (not query.isActive or self._has_caught_up(query, name)):
                self._caught_up.add(name)
        return len(self._caught_up) == len(self._queries)

    def _has_caught_up(self, query: StreamingQuery, name: str) -> bool:
        status = query.status
        if status["isTriggerActive"] or status["message"].startswith("Initializing"):
            return False
        if name in self._tables:
            return self._has_read_table(query, name, self._tables[name])
        batch, read = BatchLog(self._checkpoints / name).progress
        if not self._heads:
            return not status["isDataAvailable"] and (batch >= 0 or status["message"] == NOTHING_NEW)
        if not read or any(offset < self._heads.get(place, 0) for place, offset in read.items()):
            return False
        began = self._reached.setdefault(name, batch)
        return batch > began or not status["isDataAvailable"]

    def _has_read_table(self, query: StreamingQuery, name: str, table: Path) -> bool:
        if table.name not in self._caught_up:
            return False
        log = BatchLog(self._checkpoints / name)
        batch = log.newest_committed
        if batch is None:
            return False
        offset = json.loads(log.batch(batch).sources[0])
        if offset["reservoirVersion"] <= newest_version(table):
            return False
        began = self._reached.setdefault(name, batch)
        return batch > began or not query.status["isDataAvailable"]
