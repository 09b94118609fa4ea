"""Sources that are known by nothing but the form of their offsets: Spark's sources for tests, Python data sources and
connectors of all kinds. What is no number, and no table of partitions, has an unknown form."""

import sys
from collections.abc import Mapping
from typing import Any

from ledgerops.model.offsets import by_topic, is_whole
from ledgerops.model.records import Offsets
from ledgerops.model.sources.kind import Limit, Position, SourceKind, numbers


def _position(offset: Any, source: str) -> Position | None:
    if is_whole(offset):
        return Position({(source, "0"): offset})
    offsets = _flat(offset, source)
    offsets = by_topic(offset) if offsets is None else offsets
    return None if offsets is None else Position(offsets)


def _flat(value: object, source: str) -> Offsets | None:
    """`{"0": 5, "1": 6}`, or any one key with a number; None for any other form. Several fields of which one is no
    number describe one position, such as a sequence number and a time: no partitions."""
    if not isinstance(value, Mapping) or not all(is_whole(each) for each in value.values()):
        return None
    if len(value) > 1 and not all(str(key).isdecimal() for key in value):
        return None
    return {(source, sys.intern(str(key))): each for key, each in value.items()}


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
