"""Poison: records that no reader can take, put between the good ones on purpose, to be found again by their reason.

After record n of the stream, one poison record follows in the same partition when the hash of n is below the plan's
share; another part of the hash says of which kind. Good records keep their numbers, their order and their bytes, and
the same seed gives the same poison. A poison record has an id of its own (`X` in place of the first letter), so that a
reader that lets one through shows a transaction that was never sent, and not a copy of a good one.

Only Kafka and landing folders have poison: the embedded source and a replay hand rows to Spark, not bytes. A file has
neither keys nor tombstones, so the kinds `null_key` and `tombstone` are for Kafka alone.
"""

import json
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ledgerops.ledger.plan.partitioning import Ints
from ledgerops.ledger.plan.sections import POISON_KINDS, Poison
from ledgerops.ledger.plan.seeded_hash import hashes, high_half, low_half

REASONS = POISON_KINDS  # what a reader calls the records that it refuses
KEYLESS = ("invalid_json", "missing_field", "wrong_type", "oversized")  # those that a file can hold, too
MAX_VALUE_BYTES = 64 * 1024  # a reader refuses a longer value; a good one has some 220 bytes
_POISON = 6  # the purpose of its hashes; those below are the generator's

# by table: the field that missing_field leaves out, and the number or instant that wrong_type writes as a word
_FIELDS = {"ad_events": ("ad_id", "event_time")}
_TRANSACTION = ("transaction_id", "amount")

Record = tuple[bytes | None, bytes | None]  # key and value


def kinds_after(poison: Poison, seed: int, records: Ints, kinds: Sequence[str] = REASONS) -> NDArray[np.intp]:
    """For each record the index in REASONS of the poison that follows it, -1 for none; only `kinds` are made."""
    found = np.full(len(records), -1, np.intp)
    chosen = [REASONS.index(kind) for kind in poison.kinds if kind in kinds]
    if not poison.share or not chosen:
        return found
    bits = hashes(seed, _POISON, records)
    hit = low_half(bits) < poison.share
    found[hit] = np.array(chosen)[(high_half(bits[hit]) * len(chosen)).astype(np.intp)]
    return found


def spoil(kind: str, table: str, number: int, key: bytes, value: bytes) -> Record:
    """The poison record of a kind that follows record `number`, made from that record's key and value."""
    missing, wrong = _FIELDS.get(table, _TRANSACTION)
    if kind == "tombstone":
        return key, None
    fields = json.loads(value)
    first = next(iter(fields))
    fields[first] = f"X{number:010}"
    if kind == "missing_field":
        del fields[missing]
    elif kind == "wrong_type":
        fields[wrong] = "much"
    elif kind == "oversized":
        fields["padding"] = "x" * MAX_VALUE_BYTES
    spoiled = json.dumps(fields, separators=(",", ":"), ensure_ascii=False).encode()
    if kind == "invalid_json":
        return key, spoiled[: len(spoiled) // 2]
    return (None if kind == "null_key" else key), spoiled
