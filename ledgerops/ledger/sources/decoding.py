"""One record as it came -> one row of a table, or a reject with its reason. Used by every source that reads JSON.

Everything is decided by Spark's own expressions, none of it in Python. The rules:

- A value is one JSON object in UTF-8: else `invalid_json`, as are two objects, anything behind the object, or an array.
  Fields that the table does not have are ignored, so that a producer may add some before the readers know them. Of a
  field that is given twice the last counts.
- Every field must be there and not null, except NULLABLE: else `missing_field`.
- A text is a JSON string: a number where text is expected is `wrong_type`, because 7 and "07" would become two keys.
- Money is a JSON number with at most two decimals (trailing zeros do not count) and 16 digits before the point. A third
  decimal is `wrong_type` and never rounded, and so are a number in quotes and one with an exponent.
- A whole number is a JSON number of 32 bits without a fraction.
- An instant is a text like "2024-03-01T10:00:00.123456Z", with a time and with a zone (Z or +02:00): "2024-03-01" would
  mean another instant in another place. Digits beyond microseconds are cut.
- `null_key`: the partitions of a topic are made by key, and a row without one is in any of them. Files have no keys.
- `tombstone`: no value. In this ledger nothing is ever deleted, so a tombstone is no row, of compacted topics either.
- `oversized`: more than MAX_VALUE_BYTES; such a value is not parsed.

The first reason that holds, in this order, is the reject's: tombstone, null_key, oversized, invalid_json,
missing_field, wrong_type.

Most records are written as `_written` has it, without blanks, escapes or further fields and with all decimals. They are
cut at their commas, and the values are put together again: where that gives the very text that came, and no value holds
what JSON escapes, the record is what it seems to be. Only the others are parsed as JSON and taken apart field by field,
which takes far longer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import reduce
from typing import TYPE_CHECKING

from ledgerops.ledger.plan.poison import MAX_VALUE_BYTES, REASONS
from ledgerops.ledger.plan.schemas import REJECTS, TABLES

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

NULLABLE = frozenset({"operation"})
OBSERVED = "rejected_"  # column of the observation: how many records of a batch were refused, by reason
OPTIONS = {"allowSingleQuotes": "false", "allowNonNumericNumbers": "false"}
MIN_INSTANT_CHARACTERS = len("2024-03-01T10:00:00Z")
WORDS = {
    "STRING": "text",
    "TIMESTAMP": "instant like 2024-03-01T10:00:00Z",
    "INT": "whole number",
    "DECIMAL(18,2)": "amount with at most two decimals",
}
PIECES, GOOD, ROW, TAKEN = "__pieces", "__good", "__row", "__taken"  # columns on the way
CUT, AT = "__cut_", "__at_"  # before the names of columns that were read by cutting, and of their instants
QUOTED = ("STRING", "TIMESTAMP")
# What a text in JSON holds only after a backslash. Each character by itself: Java looks such a class up in a table.
ESCAPED = '["\\\\' + "".join(f"\\x{code:02X}" for code in range(0x20)) + "]"


def rows(records: DataFrame, table: str, keyed: bool, observation: str) -> DataFrame:
    """The good rows of `table`, counting the others, by reason, in an observation of that name.

    `records` has the columns `value` (binary), and `key` (binary) when `keyed`.
    """
    from pyspark.sql import functions as F

    found = F.col(f"{TAKEN}.reason")  # as a column of its own it would copy each row once more
    counts = [F.count(F.when(found == reason, 1)).alias(f"{OBSERVED}{reason}") for reason in REASONS]
    # the observation also keeps filters from being pushed below it, where every record would be parsed twice
    judged = _judged(records, table, keyed).observe(observation, *counts)
    return judged.where(found.isNull()).select(*_row_of(_columns(table)))


def rejects(records: DataFrame, table: str, keyed: bool) -> DataFrame:
    """The records that are no row of `table`, in the columns of schemas.REJECTS.

    `records` has the columns `value`, `key`, `topic`, `partition`, `offset` and `timestamp`.
    """
    from pyspark.sql import functions as F

    judged = _judged(records, table, keyed, detailed=True).select("*", f"{TAKEN}.reason", f"{TAKEN}.detail")
    read = judged.observe(f"records_of_{table}", F.count(F.lit(1)).alias("records"))  # as in `rows`
    return read.where(F.col("reason").isNotNull()).select(*(name.split()[0] for name in REJECTS.split(", ")))


def _columns(table: str) -> dict[str, str]:
    """Column -> type, as Spark's DDL names it."""
    return dict(column.split() for column in TABLES[table].split(", "))


def _judged(records: DataFrame, table: str, keyed: bool, detailed: bool = False) -> DataFrame:
    """`records` with ROW, null where cutting did not give it, and TAKEN, null elsewhere.

    TAKEN is the `row`, the `reason` why it is none (null where it is one), and `detail` if wanted. Value and key are
    kept only with it. ROW is one column because each operator on the way copies all columns, but a struct as one.
    """
    from pyspark.sql import functions as F

    value, columns = F.col("value"), _columns(table)
    text = value.cast("string")
    short = F.octet_length(value) <= MAX_VALUE_BYTES
    cut = records.withColumn(PIECES, F.when(short, F.split(text, ",")))
    cut = cut.withColumns({f"{CUT}{name}": each for name, each in _cut(columns).items()}).drop(PIECES)
    instants = {name: f"{AT}{name}" for name, kind in columns.items() if kind == "TIMESTAMP"}
    cut = cut.withColumns({at: _instant(F.col(f"{CUT}{name}")) for name, at in instants.items()})
    texts = [F.col(f"{CUT}{name}") for name, kind in columns.items() if kind in QUOTED]
    plain = ~F.concat(*(F.coalesce(each, F.lit("")) for each in texts)).rlike(ESCAPED)
    wanted = [*instants.values(), *(["key"] if keyed else [])]
    good = reduce(lambda a, b: a & b, [F.col(each).isNotNull() for each in wanted], (_written(columns) == text) & plain)
    cut = cut.withColumn(GOOD, F.coalesce(good, F.lit(False)))
    whole = F.struct(*(F.col(instants.get(name, f"{CUT}{name}")).alias(name) for name in columns))
    kept = {name: F.when(~F.col(GOOD), F.col(name)) for name in ("value", *(["key"] if keyed else []))}
    # What follows is not compiled with what stands before: only what it needs goes there.
    cut = cut.withColumns({**kept, ROW: F.when(F.col(GOOD), whole)})
    cut = cut.drop(*(f"{CUT}{name}" for name in columns), *instants.values())
    slow = _taken_apart(F.when(short & F.is_valid_utf8(value), text), columns, keyed, detailed)
    return cut.withColumn(TAKEN, F.when(~F.col(GOOD), slow)).drop(GOOD)


def _row_of(columns: Mapping[str, str]) -> list[Column]:
    """The columns of a good row, from what `_judged` adds."""
    from pyspark.sql import functions as F

    cut, taken = F.col(ROW), F.col(TAKEN)["row"]
    return [F.when(cut.isNotNull(), cut[name]).otherwise(taken[name]).alias(name) for name in columns]


def _cut(columns: Mapping[str, str]) -> dict[str, Column]:
    """The value of each field, of an instant its text, from its place among PIECES; of another record it is anything.

    `{"a":"x","b":1.00}` has the pieces `{"a":"x"` and `"b":1.00}`.
    """
    from pyspark.sql import functions as F

    found: dict[str, Column] = {}
    for place, (name, kind) in enumerate(columns.items()):
        piece, end = F.get(PIECES, F.lit(place)), "}" if place == len(columns) - 1 else ""
        lead, end = f'{"" if place else "{"}"{name}":', f'"{end}' if kind in QUOTED else end
        skipped = len(lead) + (kind in QUOTED)
        text = F.substring(piece, F.lit(skipped + 1), F.length(piece) - (skipped + len(end)))
        if kind not in QUOTED:
            text = text.try_cast(kind)
        found[name] = F.when(piece.endswith(end), text) if name in NULLABLE else text
    return found


def _taken_apart(text: Column, columns: Mapping[str, str], keyed: bool, detailed: bool) -> Column:
    """What becomes of a record, from the type of each of its fields. `text` is null where it is not to be parsed."""
    from pyspark.sql import functions as F

    shape = f"ARRAY<STRUCT<{', '.join(f'{name}: VARIANT' for name in columns)}>>"

    def judged(fields: Column, types: Column, row: Column) -> Column:
        reason = _reason(fields, types, row, columns, keyed)
        found = [row.alias("row"), reason.alias("reason")]
        return F.struct(*found, *([_detail(reason, types, row, columns).alias("detail")] if detailed else []))

    def with_types(fields: Column) -> Column:
        types = F.struct(*(F.schema_of_variant(fields[name]).alias(name) for name in columns))
        return _let(types, lambda types: _let(_row(fields, types), lambda row: judged(fields, types, row)))

    def _row(fields: Column, types: Column) -> Column:
        return F.struct(*(_value(fields[name], types[name], kind).alias(name) for name, kind in columns.items()))

    # Spark stops at the end of the first object; between brackets a second one, or anything else, is an error
    parsed = F.from_json(F.concat(F.lit("["), text, F.lit("]")), shape, OPTIONS)
    return _let(parsed, lambda found: _let(F.when(F.size(found) == 1, found[0]), with_types))


def _let(value: Column, use: Callable[[Column], Column]) -> Column:
    """`use` of a value that is computed once. Columns on the way would be computed for every record, plain or not."""
    from pyspark.sql import functions as F

    return F.transform(F.array(value), use)[0]


def _reason(fields: Column, types: Column, row: Column, columns: Mapping[str, str], keyed: bool) -> Column:
    from pyspark.sql import functions as F

    value = F.col("value")
    whole = [
        row[name].isNotNull() | _absent(types[name]) if name in NULLABLE else row[name].isNotNull() for name in columns
    ]
    good = reduce(lambda a, b: a & b, [*whole, *([F.col("key").isNotNull()] if keyed else [])])
    missing = reduce(lambda a, b: a | b, [_absent(types[name]) for name in columns if name not in NULLABLE])
    reason = F.when(good, F.lit(None).cast("string")).when(value.isNull(), "tombstone")
    if keyed:
        reason = reason.when(F.col("key").isNull(), "null_key")
    return (
        reason.when(F.octet_length(value) > MAX_VALUE_BYTES, "oversized")
        .when(fields.isNull(), "invalid_json")
        .when(missing, "missing_field")
        .otherwise("wrong_type")
    )


def _written(columns: Mapping[str, str]) -> Column:
    """The record as a writer without blanks makes it of the columns of CUT; null where a field is missing."""
    from pyspark.sql import functions as F

    parts: list[Column] = []
    for name, kind in columns.items():
        value, lead = F.col(f"{CUT}{name}").cast("string"), f'{"," if parts else "{"}"{name}":'
        if name in NULLABLE:
            parts += [F.lit(lead), F.coalesce(F.concat(F.lit('"'), value, F.lit('"')), F.lit("null"))]
        elif kind in QUOTED:
            parts += [F.lit(f'{lead}"'), value, F.lit('"')]
        else:
            parts += [F.lit(lead), value]
    return F.concat(*parts, F.lit("}"))


def _instant(text: Column) -> Column:
    """The instant that a text is; null where it has no time or no zone."""
    from pyspark.sql import functions as F

    timed = (F.length(text) >= MIN_INSTANT_CHARACTERS) & (F.substring(text, 11, 1) == "T")
    zoned = text.endswith("Z") | F.substring(text, -6, 1).isin("+", "-")
    return F.when(timed & zoned, text.try_cast("timestamp"))


def _absent(found: Column) -> Column:
    return found.isNull() | (found == "VOID")  # not there, or null


def _value(field: Column, found: Column, kind: str) -> Column:
    """The field as the column's type; null when it is of another."""
    from pyspark.sql import functions as F

    if kind == "STRING":
        return F.when(found == "STRING", field.cast("string"))
    if kind == "TIMESTAMP":
        return _instant(F.when(found == "STRING", field.cast("string")))
    if kind == "INT":
        return F.when(found == "BIGINT", field.try_cast("int"))
    assert kind == "DECIMAL(18,2)", kind
    # Spark's type of a JSON number has as many decimals as the number, without trailing zeros
    exact = (found == "BIGINT") | (found.startswith("DECIMAL") & F.substring(found, -3, 3).isin(",0)", ",1)", ",2)"))
    return F.when(exact, field.try_cast("decimal(18,2)"))


def _detail(reason: Column, types: Column, row: Column, columns: Mapping[str, str]) -> Column:
    """What is wrong, in words: the first field that is."""
    from pyspark.sql import functions as F

    size = F.octet_length("value").cast("string")
    missing = F.coalesce(
        *(F.when(_absent(types[name]), F.lit(f"no {name}")) for name in columns if name not in NULLABLE)
    )
    wrong = F.coalesce(
        *(
            F.when(
                row[name].isNull() & ~_absent(types[name]),
                F.concat(F.lit(f"{name} is no {WORDS[kind]}: "), F.lower(types[name])),
            )
            for name, kind in columns.items()
        )
    )
    return (
        F.when(reason == "tombstone", "no value")
        .when(reason == "null_key", "no key")
        .when(reason == "oversized", F.concat(size, F.lit(f" bytes, of at most {MAX_VALUE_BYTES}")))
        .when(reason == "invalid_json", "not one JSON object in UTF-8")
        .when(reason == "missing_field", missing)
        .otherwise(wrong)
    )
