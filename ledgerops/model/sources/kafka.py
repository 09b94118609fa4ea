"""Apache Kafka, and Azure Event Hubs by its Kafka endpoint; Event Hubs by Microsoft's own connector.

Kafka's head is `latestOffset` of each batch, or what the broker says; Event Hubs' own connector reports no head.
"""

from typing import Any

from ledgerops.model.offsets import by_topic
from ledgerops.model.records import Left
from ledgerops.model.sources.kind import Limit, Position, Reported, SourceKind, whole


def _position(offset: Any, source: str) -> Position | None:
    """`{"topic": {"0": 5}}`: the next offset of each partition."""
    offsets = by_topic(offset)
    return None if offsets is None else Position(offsets)


def _left(metrics: Reported, offset: Any) -> Left:
    """Databricks estimates the bytes; the rows are the difference of the offsets."""
    return Left(bytes=whole(metrics, "estimatedTotalBytesBehindLatest"))


KAFKA = SourceKind(
    "kafka", "Kafka", ("Kafka",), _position, ("offsets", "bytes"), tried=True, left=_left,
    understood=frozenset(
        (
            "minOffsetsBehindLatest", "maxOffsetsBehindLatest", "avgOffsetsBehindLatest",
            "estimatedTotalBytesBehindLatest",
        )
    ),
    limits=(
        Limit("maxOffsetsPerTrigger", "rows"), Limit("minOffsetsPerTrigger", "rows", lower=True),
        Limit("maxTriggerDelay", "seconds", lower=True),
    ),
    has_broker=True,
)  # fmt: skip
EVENT_HUBS = SourceKind(
    "eventhubs", "Event Hubs (its own connector)", ("org.apache.spark.sql.eventhubs.EventHubsSource",), _position, (),
    tried=False, limits=(Limit("maxEventsPerTrigger", "rows"), Limit("eventhubs.maxEventsPerTrigger", "rows")),
)  # fmt: skip
