"""Digests of rows that do not depend on their order: a row more, less or other changes them.

Each value of each row is hashed to 64 bits together with the id of its row, and the hashes of a column are added
modulo 2^64. Two sets of rows of the same number whose digests agree in a column hold the same pairs of id and value,
but for chance: any one fault stays unseen with a probability of about 2^-64 a column. (Against somebody who looks for
collisions on purpose a sum is no protection; against faults it is.)
"""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ledgerops.ledger.plan.partitioning import Ints
from ledgerops.ledger.plan.seeded_hash import GOLDEN, Hashes, mixed

ID = "transaction_id"
_NULL = np.uint64(0x6E756C6C)
_CENTS = pa.decimal128(38, 2)
_MICROS = pa.timestamp("us", tz="UTC")


def row_hashes(rows: pa.RecordBatch) -> dict[str, Hashes]:
    """For each column one hash a row; that of the id is of the id alone, the others are bound to it.

    Columns are hashed by what they mean: an instant or an amount hashes the same in any unit, precision or scale.
    Nested columns are left out.
    """
    ids = hash_values(rows.column(ID))
    found = {ID: ids}
    for name in rows.schema.names:
        if name != ID and not pa.types.is_nested(rows.schema.field(name).type):
            # the place of a value counts: amount 5 and balance 7 is not amount 7 and balance 5
            found[name] = mixed(hash_values(rows.column(name)) ^ (ids * np.uint64(_salt(name))))
    return found


def hash_values(column: pa.Array) -> Hashes:
    """64 bits for each value, a fixed one for null."""
    nulls = column.is_null().to_numpy(zero_copy_only=False) if column.null_count else None
    kind = column.type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_binary(kind):
        found = _hash_texts(column.cast(pa.large_binary()))
    else:
        found = mixed(whole_numbers(column).view(np.uint64) + np.uint64(GOLDEN))
    if nulls is not None:
        found[nulls] = _NULL
    return found


def whole_numbers(column: pa.Array) -> Ints:
    """Instants as microseconds, amounts as hundredths, days and whole numbers as they are; null is 0."""
    kind = column.type
    if pa.types.is_timestamp(kind):
        numbers = column.cast(_MICROS if kind.tz else pa.timestamp("us"), safe=False).cast(pa.int64())
    elif pa.types.is_decimal(kind):
        return _hundredths(column)
    elif pa.types.is_floating(kind):  # JSON has no decimals; the doubles between two hundredths are millions
        numbers = pc.round(pc.multiply(column, 100.0)).cast(pa.int64())
    elif pa.types.is_date(kind):
        numbers = column.cast(pa.date32()).cast(pa.int32()).cast(pa.int64())
    else:
        numbers = column.cast(pa.int64())
    filled: Ints = numbers.fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64, copy=True)
    return filled


def _hundredths(column: pa.Array) -> Ints:
    exact = column.cast(_CENTS).fill_null(0)
    words = np.frombuffer(exact.buffers()[1], np.int64).reshape(-1, 2)[exact.offset : exact.offset + len(exact)]
    if np.any(words[:, 0] >> 63 != words[:, 1]):
        raise OverflowError("an amount of more than 92,233,720,368,547,758.07")
    return np.ascontiguousarray(words[:, 0])


def _hash_texts(column: pa.Array) -> Hashes:
    """Of the bytes; ids of one width at once, and of other columns each distinct text once."""
    if not len(column):
        return np.empty(0, np.uint64)
    offsets = np.frombuffer(column.buffers()[1], np.int64)[column.offset : column.offset + len(column) + 1]
    widths = np.diff(offsets)
    if widths[0] > 0 and not np.any(widths != widths[0]):
        data = np.frombuffer(column.buffers()[2], np.uint8)[offsets[0] : offsets[-1]]
        return _hash_bytes(data.reshape(len(column), int(widths[0])))
    coded = column.fill_null(b"").dictionary_encode()
    texts = coded.dictionary.to_pylist()
    by_width: dict[int, list[int]] = {}
    for place, text in enumerate(texts):
        by_width.setdefault(len(text), []).append(place)
    each = np.empty(len(texts), np.uint64)
    for width, places in by_width.items():
        joined = np.frombuffer(b"".join(texts[place] for place in places), np.uint8)
        each[places] = _hash_bytes(joined.reshape(len(places), width))
    hashed: Hashes = each[coded.indices.to_numpy(zero_copy_only=False)]
    return hashed


def _hash_bytes(rows: NDArray[np.uint8]) -> Hashes:
    """Of each row of bytes: eight at a time, and the width."""
    count, width = rows.shape
    words = -(-width // 8)
    padded = np.zeros((count, words * 8), np.uint8)
    padded[:, :width] = rows
    found = np.full(count, np.uint64(width))
    for word in padded.view("<u8").T:
        found = mixed(found ^ word) + np.uint64(GOLDEN)
    return mixed(found)


def _salt(name: str) -> int:
    salt = 0xCBF29CE484222325  # FNV-1a
    for byte in name.encode():
        salt = (salt ^ byte) * 0x100000001B3 & (2**64 - 1)
    return salt | 1
