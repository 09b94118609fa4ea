"""Amazon Kinesis, by Databricks' connector and by that of AWS (awslabs; Qubole's has the same form).

Sequence numbers are no counts, so the distance to the head is not known in records. Databricks reports it in seconds
and bytes; the connector of AWS does not report the head.
"""

from collections.abc import Mapping
from typing import Any

from ledgerops.model.records import Left
from ledgerops.model.sources.kind import Limit, Position, Reported, SourceKind, real, whole

ITERATOR = "iteratorType"  # of each shard, in the connector of AWS
BEHIND = "msBehindLatest"


def _is_list_of_shards(offset: Any) -> bool:
    return isinstance(offset, list) and all(
        isinstance(shard, Mapping) and "shard" in shard and "lastSeqNum" in shard for shard in offset
    )


def _owns(offset: Any) -> bool:
    if isinstance(offset, Mapping):
        shards = [value for key, value in offset.items() if key != "metadata"]
        return bool(shards) and all(isinstance(shard, Mapping) and ITERATOR in shard for shard in shards)
    return _is_list_of_shards(offset) and bool(offset)


def _position(offset: Any, source: str) -> Position | None:
    """A list of shards (Databricks) or an object of shards (AWS), both without numbers that could be subtracted."""
    return Position() if _owns(offset) or offset in ([], {}) else None


def _left(metrics: Reported, offset: Any) -> Left:
    """The seconds of the shard that is furthest behind; of closed shards only where no open one reports any."""
    milliseconds = real(metrics, "maxMsBehindLatest")
    if milliseconds is None and _is_list_of_shards(offset):
        known = [(shard.get("closed") is True, real(shard, BEHIND)) for shard in offset if BEHIND in shard]
        opened = [behind for closed, behind in known if behind is not None and not closed]
        milliseconds = max(opened or [behind for _, behind in known if behind is not None], default=None)
    return Left(
        bytes=whole(metrics, "totalPrefetchedBytes"), seconds=None if milliseconds is None else milliseconds / 1000
    )


KINESIS = SourceKind(
    "kinesis", "Kinesis",
    ("KinesisV2[", "org.apache.spark.sql.connector.kinesis.", "org.apache.spark.sql.kinesis."),
    _position, ("bytes",), tried=False, owns=_owns, left=_left,
    understood=frozenset(("maxMsBehindLatest", "totalPrefetchedBytes")),
    limits=(
        Limit("kinesis.maxFetchRecordsPerShard", "rows"),
        Limit("kinesis.maxFetchTimePerShardSec", "seconds"),
        Limit("kinesis.executor.maxFetchRecordsPerShard", "rows"),
        Limit("kinesis.executor.maxFetchTimeInMs", "milliseconds"),
    ),
)  # fmt: skip
