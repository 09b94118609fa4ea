"""Whether a run has read all that there was when it began, according to its checkpoints."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ledgerops.checkpoint.batch_log import BatchLog, Place

if TYPE_CHECKING:
    from pyspark.sql.streaming import StreamingQuery

NOTHING_NEW = "Waiting for data to arrive"  # what a query's status says when a trigger has found nothing to read


class CatchUpCheck:
    """`heads` are where the topics ended at the start; empty for a landing folder, where no file may be left.

    A query has caught up when a batch has reached the heads, and another one or a trigger without input has followed: a
    watermark that the last rows moved closes its windows only then.
    """

    def __init__(self, queries: Sequence[StreamingQuery], checkpoints: Path, heads: Mapping[Place, int]) -> None:
        self._queries, self._checkpoints, self._heads = queries, checkpoints, heads
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
        batch, read = BatchLog(self._checkpoints / name).progress
        if not self._heads:
            return not status["isDataAvailable"] and (batch >= 0 or status["message"] == NOTHING_NEW)
        if not read or any(offset < self._heads.get(place, 0) for place, offset in read.items()):
            return False
        began = self._reached.setdefault(name, batch)
        return batch > began or not status["isDataAvailable"]
