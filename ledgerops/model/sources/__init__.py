"""The kinds of sources. Nothing else in the code knows one: how it is recognised, and what its numbers mean."""

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from ledgerops.model.offsets import decoded
from ledgerops.model.records import Offsets
from ledgerops.model.sources.delta import DELTA, folder
from ledgerops.model.sources.files import AUTO_LOADER, FILES, sink_log
from ledgerops.model.sources.iceberg import ICEBERG, is_iceberg
from ledgerops.model.sources.kafka import EVENT_HUBS, KAFKA
from ledgerops.model.sources.kind import Limit, SourceKind
from ledgerops.model.sources.kinesis import KINESIS
from ledgerops.model.sources.other import OTHER, RATE_MICRO_BATCH
from ledgerops.model.sources.pubsub import PUBSUB

KINDS = (KAFKA, EVENT_HUBS, KINESIS, PUBSUB, DELTA, ICEBERG, FILES, AUTO_LOADER, RATE_MICRO_BATCH, OTHER)
NAMED: Mapping[str, SourceKind] = {kind.name: kind for kind in KINDS}
LIMITS: Mapping[str, Limit] = {limit.option.lower(): limit for kind in KINDS for limit in kind.limits}
# an option of a connector that is not among the kinds
LIKE_A_LIMIT = re.compile(r"max\w*per(trigger|batch)", re.IGNORECASE)
SIZE = re.compile(r"(\d{1,18}) *([kmgtp]?)b?", re.ASCII | re.IGNORECASE)  # Spark's text of a size: 10g, 512 MB
SIZES = {"": 0, "k": 10, "m": 20, "g": 30, "t": 40, "p": 50}  # powers of two


class Cap(NamedTuple):
    """A limit that a query has set, with its value in the unit of the limit."""

    option: str  # as the query has written it
    value: int
    limit: Limit


def kind_of(description: str, offset: Any) -> SourceKind:
    """The kind of a source by Spark's description of it, else by a decoded offset, else OTHER."""
    for kind in KINDS:
        if kind.descriptions and description.startswith(kind.descriptions):
            return kind
    return next((kind for kind in KINDS if offset is not None and kind.owns(offset)), OTHER)


def offsets_of(value: object, kind: SourceKind | None = None, source: str = "") -> Offsets:
    """Offsets that can be subtracted, by (topic, partition), from an offset as Spark writes it; empty without any. Its
    form tells the `kind` where none is given; a source without topics is called `source`."""
    offset = decoded(value)
    position = None if offset is None else (kind or kind_of("", offset)).position(offset, source)
    return position.offsets if position is not None else {}


def sink_table(description: str) -> str | None:
    """What the agent finds the table by that a query writes, from a description of its sink; None for another sink."""
    return description if is_iceberg(description) else folder(description) or sink_log(description)


def is_limit(option: str) -> bool:
    """Whether an option of a source bounds what a batch reads."""
    return option.lower() in LIMITS or LIKE_A_LIMIT.fullmatch(option) is not None


def caps(options: Mapping[str, str]) -> list[Cap]:
    """Those options that cap a batch of a known source, the smallest first of each unit; one without a value above 0 is
    left out."""
    found = []
    for option, text in options.items():
        limit = LIMITS.get(option.lower())
        value = _value(text, limit) if limit is not None and not limit.lower else None
        if limit is not None and value:
            found.append(Cap(option, value, limit))
    return sorted(found, key=lambda cap: (cap.limit.unit, cap.value))


def _value(text: str, limit: Limit) -> int | None:
    size = SIZE.fullmatch(text.strip())
    if size is None or (size[2] and limit.unit != "bytes"):
        return None
    return int(size[1]) << SIZES[size[2].lower()]
