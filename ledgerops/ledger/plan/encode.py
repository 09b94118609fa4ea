"""Rows as JSON records: the values that go to Kafka or into a landing folder, made by the column.

One object a row with the columns in their order: texts escaped, instants as "2024-03-01T10:00:00.123456Z", days as
"2024-03-01", decimals as numbers with their decimals, what is absent as null. The same rows give the same bytes.
"""

import json

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

# Only these must be escaped in JSON (RFC 8259, section 7); all else may stand as it is in UTF-8.
_UNSAFE = np.zeros(256, np.bool_)
_UNSAFE[[*range(0x20), ord('"'), ord("\\")]] = True
_MICROS = pa.timestamp("us")


def json_values(rows: pa.RecordBatch) -> pa.Array:
    """One JSON text, as binary, for each row."""
    parts: list[str | pa.Array] = []
    lead = "{"
    for name, column in zip(rows.schema.names, rows.columns, strict=True):
        before, text, after = _json(column)
        lead += f"{json.dumps(name)}:{before}"
        parts += [lead, text]
        lead = f"{after},"
    parts.append(lead[:-1] + "}")
    return pc.binary_join_element_wise(*parts, "").cast(pa.binary())


def json_keys(column: pa.Array) -> pa.Array:
    """A column as binary keys; null stays null."""
    return column.cast(pa.string()).cast(pa.binary())


def _json(column: pa.Array) -> tuple[str, pa.Array, str]:
    """What stands before each value, the values, what stands behind; one join for all rows costs least."""
    kind, quote = column.type, '"'
    if pa.types.is_timestamp(kind):
        text = _instants(column)
    elif pa.types.is_date(kind):
        text = column.cast(pa.string())
    elif pa.types.is_string(kind):
        text = _escaped(column)
    else:  # numbers and truth values are what they are
        text, quote = column.cast(pa.string()), ""
    if not text.null_count:
        return quote, text, quote
    quoted = pc.binary_join_element_wise(quote, text, quote, "") if quote else text
    return "", quoted.fill_null("null"), ""


def _instants(column: pa.Array) -> pa.Array:
    # strftime would write the same in ten times the time
    text = column.cast(_MICROS, safe=False).cast(pa.string())
    return pc.binary_join_element_wise(pc.binary_replace_slice(text, 10, 11, "T"), "Z", "")


def _escaped(column: pa.Array) -> pa.Array:
    if not len(column) or not _UNSAFE[_bytes(column)].any():
        return column
    escaped = [None if text is None else json.dumps(text, ensure_ascii=False)[1:-1] for text in column.to_pylist()]
    return pa.array(escaped, column.type)


def _bytes(column: pa.Array) -> NDArray[np.uint8]:
    offsets = np.frombuffer(column.buffers()[1], np.int32)
    first, last = offsets[column.offset], offsets[column.offset + len(column)]
    return np.frombuffer(column.buffers()[2] or b"", np.uint8)[first:last]
