"""Google Pub/Sub, by Databricks' connector."""

from typing import Any

from ledgerops.model.records import Left
from ledgerops.model.sources.kind import Limit, Position, Reported, SourceKind, has, whole

_owns = has("seqNum", "fetchEpoch")


def _position(offset: Any, source: str) -> Position | None:
    """`{"sourceVersion", "seqNum", "fetchEpoch"}`: fetches, not records."""
    return Position() if _owns(offset) else None


def _left(metrics: Reported, offset: Any) -> Left:
    return Left(rows=whole(metrics, "numRecordsReadyToProcess"), bytes=whole(metrics, "sizeOfRecordsReadyToProcess"))


PUBSUB = SourceKind(
    "pubsub", "Pub/Sub", ("PubSub",), _position, ("rows", "bytes"), tried=False, owns=_owns, left=_left,
    understood=frozenset(("numRecordsReadyToProcess", "sizeOfRecordsReadyToProcess")),
    limits=(Limit("maxRecordsPerFetch", "rows"), Limit("maxBytesPerTrigger", "bytes")),
)  # fmt: skip
