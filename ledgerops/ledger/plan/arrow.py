"""Arrow columns made from buffers, and the schemas of the tables in Arrow.

`pa.array` and `pa.scalar` import pandas, which takes a second of CPU time in each of Spark's Python processes; columns
that are made from buffers need none of it.
"""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ledgerops.ledger.plan import schemas

_TIMESTAMP = pa.timestamp("us", tz="UTC")
# what Spark makes of the types in schemas.py
_TYPES = {
    "STRING": pa.string(),
    "TIMESTAMP": _TIMESTAMP,
    "DATE": pa.date32(),
    "INT": pa.int32(),
    "DECIMAL(18,2)": pa.decimal128(18, 2),
}


def schema_of(ddl: str) -> pa.Schema:
    """The columns of a table of schemas.py in Arrow."""
    return pa.schema([(name, _TYPES[kind]) for name, kind in schemas.columns_of(ddl).items()])


TRANSACTIONS = schema_of(schemas.TRANSACTIONS)
_FOUR_DIGITS = np.array([[ord(c) for c in f"{i:04d}"] for i in range(10_000)], np.uint8)


def identifiers(letter: str, numbers: NDArray[np.int64], digits: int) -> NDArray[np.uint8]:
    """One row of bytes for each number: the letter, then the number with leading zeros."""
    out = np.empty((len(numbers), 1 + digits), np.uint8)
    out[:, 0] = ord(letter)
    right = 1 + digits
    rest = numbers
    while right > 1:
        take = min(4, right - 1)
        rest, last = np.divmod(rest, 10_000) if right > 5 else (rest, rest)
        out[:, right - take : right] = _FOUR_DIGITS[last, 4 - take :] if take < 4 else _FOUR_DIGITS[last]
        right -= take
    return out


def strings(rows: NDArray[np.uint8]) -> pa.Array:
    """Rows of bytes of one width as a string column."""
    count, width = rows.shape
    offsets = np.arange(count + 1, dtype=np.int32) * np.int32(width)
    data = np.ascontiguousarray(rows)
    return pa.Array.from_buffers(pa.string(), count, [None, pa.py_buffer(offsets), pa.py_buffer(data)])


def texts(values: Sequence[str | None]) -> pa.Array:
    """A string column; a single value of it serves where Arrow wants a scalar: `texts(["x"])[0]`."""
    encoded = [(value or "").encode() for value in values]
    offsets = np.cumsum([0, *map(len, encoded)]).astype(np.int32)
    present = np.packbits([value is not None for value in values], bitorder="little")
    buffers = [pa.py_buffer(present), pa.py_buffer(offsets), pa.py_buffer(b"".join(encoded))]
    return pa.Array.from_buffers(pa.string(), len(values), buffers)


def integers(numbers: NDArray[np.integer]) -> pa.Array:
    """Whole numbers of the type that the numpy array has, such as the places for `take`."""
    content = np.ascontiguousarray(numbers)
    return pa.Array.from_buffers(pa.from_numpy_dtype(content.dtype), len(content), [None, pa.py_buffer(content)])


def money(units: NDArray[np.int64], scale: int = 2) -> pa.Array:
    """DECIMAL(18, scale) from whole units, cents by default: 128-bit little-endian, sign-extended."""
    words = np.empty((len(units), 2), np.int64)
    words[:, 0] = units
    words[:, 1] = units >> 63
    return pa.Array.from_buffers(pa.decimal128(18, scale), len(units), [None, pa.py_buffer(words)])


def timestamps(micros: NDArray[np.int64]) -> pa.Array:
    """UTC timestamps from microseconds since the epoch."""
    return pa.Array.from_buffers(_TIMESTAMP, len(micros), [None, pa.py_buffer(np.ascontiguousarray(micros))])
