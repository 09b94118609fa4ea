"""Sources that are known by nothing but the form of their offsets: Spark's sources for tests, Python data sources and
connectors of all kinds. What is no number, and no table of partitions, has an unknown form."""

from typing import Any

from ledgerops.model.offsets import by_topic, flat, number
from ledgerops.model.sources.kind import Limit, Position, SourceKind, numbers


def _position(offset: Any, source: str) -> Position | None:
    offsets = number(offset, source)
    offsets = flat(offset, source) if offsets is None else offsets
    offsets = by_topic(offset) if offsets is None else offsets
    return None if offsets is None else Position(offsets)


def _rows(offset: Any, source: str) -> Position | None:
    """`{"offset": 20, "timestamp": 1667453455118}`: the rows so far, and the event time of the batch."""
    rows = numbers(offset, "offset")
    return Position({(source, "0"): rows[0]}) if rows else None


RATE_MICRO_BATCH = SourceKind(
    "rate-micro-batch", "rate-micro-batch", ("RatePerMicroBatchStream[",), _rows, (), tried=True
)
OTHER = SourceKind(
    "other", "any other source", (), _position, ("offsets",), tried=True, limits=(Limit("maxRowsPerTrigger", "rows"),),
)  # fmt: skip
