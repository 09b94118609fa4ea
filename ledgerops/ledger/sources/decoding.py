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

Most records are written as `_written` has it, without blanks and with all decimals. They are read by a typed
`from_json`, which is more generous than these rules; where the text that its values give is the very text that came,
nothing was bent. Only the others are taken apart field by field, which takes three times as long.
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
QUICK, JUDGED = "__quick", "__judged"  # columns on the way


def rows(records: DataFrame, table: str, keyed: bool, observation: str) -> DataFrame:
    """The good rows of `table`, counting the others, by reason, in an observation of that name.

    `records` has the columns `value` (binary), and `key` (binary) when `keyed`.
    """
    from pyspark.sql import functions as F

    judged = _judged(records, table, keyed).select(f"{JUDGED}.row.*", f"{JUDGED}.reason")
    counts = [F.count(F.when(F.col("reason") == reason, 1)).alias(f"{OBSERVED}{reason}") for reason in REASONS]
    # the observation also keeps filters from being pushed below it, where every record would be parsed twice
    return judged.observe(observation, *counts).where(F.col("reason").isNull()).drop("reason")


def rejects(records: DataFrame, table: str, keyed: bool) -> DataFrame:
    """The records that are no row of `table`, in the columns of schemas.REJECTS.

    `records` has the columns `value`, `key`, `topic`, `partition`, `offset` and `timestamp`.
    """
    from pyspark.sql import functions as F

    judged = _judged(records, table, keyed, detailed=True).select("*", f"{JUDGED}.reason", f"{JUDGED}.detail")
    read = judged.observe(f"records_of_{table}", F.count(F.lit(1)).alias("records"))  # as in `rows`
    return read.where(F.col("reason").isNotNull()).select(*(name.split()[0] for name in REJECTS.split(", ")))


def _columns(table: str) -> dict[str, str]:
    """Column -> type, as Spark's DDL names it."""
    return dict(column.split() for column in TABLES[table].split(", "))


def _judged(records: DataFrame, table: str, keyed: bool, detailed: bool = False) -> DataFrame:
    """`records` with JUDGED: `row`, the `reason` why it is none (null where it is one), and `detail` if wanted."""
    from pyspark.sql import functions as F

    value, columns = F.col("value"), _columns(table)
    text = value.cast("string")
    short = F.octet_length(value) <= MAX_VALUE_BYTES
    read = records.withColumn(QUICK, F.when(short, F.from_json(text, _with_texts_of_instants(columns))))
    read = read.withColumn(QUICK, F.when(_written(columns) == text, _read(columns)))
    good = F.col(QUICK).isNotNull() & (F.col("key").isNotNull() if keyed else F.lit(True))
    nothing = F.lit(None).cast("string")
    quick = [F.col(QUICK).alias("row"), nothing.alias("reason"), *([nothing.alias("detail")] if detailed else [])]
    slow = _taken_apart(F.when(short & F.is_valid_utf8(value), text), columns, keyed, detailed)
    return read.withColumn(JUDGED, F.when(good, F.struct(*quick)).otherwise(slow)).drop(QUICK)


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


def _with_texts_of_instants(columns: Mapping[str, str]) -> str:
    """The schema of the typed reading, which must not guess the zone of an instant."""
    return ", ".join(f"{name} {'STRING' if kind == 'TIMESTAMP' else kind}" for name, kind in columns.items())


def _written(columns: Mapping[str, str]) -> Column:
    """The record as a writer without blanks makes it of the typed reading; null where a field is missing."""
    from pyspark.sql import functions as F

    parts: list[Column] = []
    for name, kind in columns.items():
        quote = F.lit('"' if kind in ("STRING", "TIMESTAMP") else "")
        text = F.concat(quote, F.col(QUICK)[name].cast("string"), quote)
        parts += [
            F.lit(f'{"," if parts else "{"}"{name}":'),
            F.coalesce(text, F.lit("null")) if name in NULLABLE else text,
        ]
    return F.concat(*parts, F.lit("}"))


def _read(columns: Mapping[str, str]) -> Column:
    """The row of the typed reading; null when a text is no instant."""
    from pyspark.sql import functions as F

    texts = [name for name, kind in columns.items() if kind == "TIMESTAMP"]
    read = {name: _instant(F.col(QUICK)[name]) if name in texts else F.col(QUICK)[name] for name in columns}
    row = F.struct(*(value.alias(name) for name, value in read.items()))
    return F.when(reduce(lambda a, b: a & b, [read[name].isNotNull() for name in texts]), row)


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
