"""Rows of a stream as records to send: keys, values and partitions, poison among them. Pure: no broker, no clock."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from ledgerops.ledger.plan.encode import json_keys, json_values
from ledgerops.ledger.plan.partitioning import Ints
from ledgerops.ledger.plan.poison import REASONS, spoil
from ledgerops.ledger.plan.record_stream import Rows, Stream
from ledgerops.load.generator.latency_samples import LatencySample

_KEYS = {"ad_events": "ad_id"}  # the column of the key; of the other tables it is customer_id


@dataclass(frozen=True)
class Records:
    """Records in the order of the stream. The poison that follows record n has the same number."""

    numbers: Ints
    partitions: list[int]
    keys: list[bytes | None]
    values: list[bytes | None]
    poison: list[str | None]  # the reason for which a reader refuses it; None: a good one
    upto: int  # the stream has no other records of this sender below this number
    samples: list[LatencySample] = field(default_factory=list)  # whose times are kept, by place

    def poisoned(self, places: int) -> Counter[str]:
        """How many of the records at the first so many places are poison, by reason."""
        return Counter(reason for reason in self.poison[:places] if reason is not None)


def encode(stream: Stream, rows: Rows, kinds: Sequence[str] = REASONS, upto: int = 0) -> Records:
    """The records of these rows, with the poison that the stream puts among them, as far as it is of `kinds`."""
    keys = json_keys(rows.batch.column(_KEYS.get(stream.table, "customer_id"))).to_pylist()
    values = json_values(rows.batch).to_pylist()
    after = stream.poison(rows.numbers, kinds)
    places = np.flatnonzero(after >= 0)
    partitions = rows.partitions.tolist()
    poison: list[str | None] = [None] * len(values)
    # from behind, so that the places before stay what they are
    for place in reversed(places.tolist()):
        reason = REASONS[after[place]]
        key, value = spoil(reason, stream.table, int(rows.numbers[place]), keys[place], values[place])
        keys.insert(place + 1, key)
        values.insert(place + 1, value)
        partitions.insert(place + 1, partitions[place])
        poison.insert(place + 1, reason)
    numbers = np.insert(rows.numbers, places + 1, rows.numbers[places]) if len(places) else rows.numbers
    return Records(numbers, partitions, keys, values, poison, upto)
