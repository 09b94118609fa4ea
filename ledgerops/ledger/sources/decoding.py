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
"""

from __future__ import annotations

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
ROW, PARSED, FIELDS, TYPES = "__row", "__parsed", "__fields", "__types"  # columns on the way


def rows(records: DataFrame, table: str, keyed: bool, observation: str) -> DataFrame:
    """The good rows of `table`, counting the others, by reason, in an observation of that name.

    `records` has the columns `value` (binary), and `key` (binary) when `keyed`.
    """
    from pyspark.sql import functions as F

    judged = _judged(records, table, keyed)
    counts = [F.count(F.when(F.col("reason") == reason, 1)).alias(f"{OBSERVED}{reason}") for reason in REASONS]
    # the observation also keeps a job's filters from being pushed below it, where every record would be parsed twice
    return judged.observe(observation, *counts).where(F.col("reason").isNull()).select(f"{ROW}.*")


def rejects(records: DataFrame, table: str, keyed: bool) -> DataFrame:
    """The records that are no row of `table`, in the columns of schemas.REJECTS.

    `records` has the columns `value`, `key`, `topic`, `partition`, `offset` and `timestamp`.
    """
    from pyspark.sql import functions as F

    judged = _judged(records, table, keyed).where(F.col("reason").isNotNull())
    columns = [name.split()[0] for name in REJECTS.split(", ")]
    return judged.withColumn("detail", _detail(table)).select(*columns)


def _columns(table: str) -> dict[str, str]:
    """Column -> type, as Spark's DDL names it."""
    return dict(column.split() for column in TABLES[table].split(", "))


def _judged(records: DataFrame, table: str, keyed: bool) -> DataFrame:
    """`records` with what is in them and the `reason` why they are no row, null where they are one."""
    from pyspark.sql import functions as F

    value, columns = F.col("value"), _columns(table)
    shape = f"ARRAY<STRUCT<{', '.join(f'{name}: VARIANT' for name in columns)}>>"
    # Spark stops at the end of the first object; between brackets a second one, or anything else, is an error
    text = F.concat(F.lit("["), value.cast("string"), F.lit("]"))
    parsable = (F.octet_length(value) <= MAX_VALUE_BYTES) & F.is_valid_utf8(value)
    parsed = records.withColumn(PARSED, F.when(parsable, F.from_json(text, shape, OPTIONS)))
    parsed = parsed.withColumn(FIELDS, F.when(F.size(PARSED) == 1, F.col(PARSED)[0]))
    typed = parsed.withColumn(
        TYPES, F.struct(*(F.schema_of_variant(F.col(FIELDS)[name]).alias(name) for name in columns))
    )
    read = typed.withColumn(ROW, F.struct(*(_value(name, kind).alias(name) for name, kind in columns.items())))
    whole = [
        F.col(ROW)[name].isNotNull() | _absent(name) if name in NULLABLE else F.col(ROW)[name].isNotNull()
        for name in columns
    ]
    good = reduce(lambda a, b: a & b, [*whole, *([F.col("key").isNotNull()] if keyed else [])])
    missing = reduce(lambda a, b: a | b, [_absent(name) for name in columns if name not in NULLABLE])
    reason = F.when(good, F.lit(None).cast("string")).when(value.isNull(), "tombstone")
    if keyed:
        reason = reason.when(F.col("key").isNull(), "null_key")
    return read.withColumn(
        "reason",
        reason.when(F.octet_length(value) > MAX_VALUE_BYTES, "oversized")
        .when(F.col(FIELDS).isNull(), "invalid_json")
        .when(missing, "missing_field")
        .otherwise("wrong_type"),
    )


def _absent(name: str) -> Column:
    from pyspark.sql import functions as F

    kind = F.col(TYPES)[name]
    return kind.isNull() | (kind == "VOID")  # not there, or null


def _value(name: str, kind: str) -> Column:
    """The field as the column's type; null when it is of another."""
    from pyspark.sql import functions as F

    field, found = F.col(FIELDS)[name], F.col(TYPES)[name]
    if kind == "STRING":
        return F.when(found == "STRING", field.cast("string"))
    if kind == "TIMESTAMP":
        text = F.when(found == "STRING", field.cast("string"))
        timed = (F.length(text) >= MIN_INSTANT_CHARACTERS) & (F.substring(text, 11, 1) == "T")
        zoned = text.endswith("Z") | F.substring(text, -6, 1).isin("+", "-")
        return F.when(timed & zoned, text.try_cast("timestamp"))
    if kind == "INT":
        return F.when(found == "BIGINT", field.try_cast("int"))
    assert kind == "DECIMAL(18,2)", kind
    # Spark's type of a JSON number has as many decimals as the number, without trailing zeros
    exact = (found == "BIGINT") | (found.startswith("DECIMAL") & F.substring(found, -3, 3).isin(",0)", ",1)", ",2)"))
    return F.when(exact, field.try_cast("decimal(18,2)"))


def _detail(table: str) -> Column:
    """What is wrong, in words: the first field that is."""
    from pyspark.sql import functions as F

    reason, size = F.col("reason"), F.octet_length("value").cast("string")
    names = list(_columns(table))
    missing = F.coalesce(*(F.when(_absent(name), F.lit(f"no {name}")) for name in names if name not in NULLABLE))
    wrong = F.coalesce(
        *(
            F.when(
                F.col(ROW)[name].isNull() & ~_absent(name),
                F.concat(F.lit(f"{name} is no {WORDS[kind]}: "), F.lower(F.col(TYPES)[name])),
            )
            for name, kind in _columns(table).items()
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
