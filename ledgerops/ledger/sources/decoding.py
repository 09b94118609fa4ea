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

Most records are as our own writers make them: all fields in their order, without blanks, escapes, commas in a text or
further fields. These are recognised and cut by `plain_records`. Only the others are parsed as JSON and judged field by
field, which takes far longer.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from ledgerops.ledger.plan.poison import MAX_VALUE_BYTES, REASONS
from ledgerops.ledger.plan.schemas import REJECTS, REJECTS_TABLE, TABLES, columns_of
from ledgerops.ledger.sources.plain_records import NULLABLE, frames, is_plain, is_short, values

OBSERVED = "rejected_"  # column of the observation: how many records of a batch were refused, by reason
OPTIONS = {"allowSingleQuotes": "false", "allowNonNumericNumbers": "false"}
MIN_INSTANT_CHARACTERS = len("2024-03-01T10:00:00Z")
WORDS = {
    "STRING": "text",
    "TIMESTAMP": "instant like 2024-03-01T10:00:00Z",
    "INT": "whole number",
    "DECIMAL(18,2)": "amount with at most two decimals",
}
JUDGED = "__judged"  # the only column between records and rows


def rows(records: DataFrame, table: str, keyed: bool, observation: str) -> DataFrame:
    """The good rows of `table`, counting the others, by reason, in an observation of that name.

    `records` has the columns `value` (binary), and `key` (binary) when `keyed`.
    """
    columns, reason = columns_of(TABLES[table]), F.col(f"{JUDGED}.reason")
    counts = [F.count(F.when(reason == each, 1)).alias(f"{OBSERVED}{each}") for each in REASONS]
    # the observation also keeps filters from being pushed below it, where every record would be judged twice
    judged = records.select(_judged(columns, keyed).alias(JUDGED)).observe(observation, *counts)
    return judged.where(reason.isNull()).select(*values(columns, F.col(f"{JUDGED}.pieces"), in_utc(records)))


def in_utc(records: DataFrame) -> bool:
    """Whether the session takes a time without a zone to be in UTC."""
    return str(records.sparkSession.conf.get("spark.sql.session.timeZone")) == "UTC"


def open_table(
    read: Callable[[str], DataFrame], table: str, tables: Iterable[str], keyed: bool, observation: str
) -> DataFrame:
    """The good rows of `table`, as `rows`; of the table `rejects` what is a row of none of `tables`.

    `read` gives the records of a table.
    """
    if table != REJECTS_TABLE:
        return rows(read(table), table, keyed, observation)
    return reduce(lambda some, more: some.unionByName(more), [rejects(read(each), each, keyed) for each in tables])


def rejects(records: DataFrame, table: str, keyed: bool) -> DataFrame:
    """The records that cannot be read as rows of `table`, in the columns of schemas.REJECTS.

    `records` has the columns `value`, `key`, `topic`, `partition`, `offset` and `timestamp`.
    """
    judged = records.withColumn(JUDGED, _judged(columns_of(TABLES[table]), keyed, detailed=True))
    judged = judged.select("*", f"{JUDGED}.reason", f"{JUDGED}.detail")
    read = judged.observe(f"records_of_{table}", F.count(F.lit(1)).alias("records"))  # as in `rows`
    return read.where(F.col("reason").isNotNull()).select(*columns_of(REJECTS))


def _judged(columns: Mapping[str, str], keyed: bool, detailed: bool = False) -> Column:
    """A struct of `pieces`, one for each column, which `values` reads, and `reason`, null where the record is a row.

    When `detailed` it has `reason` and `detail` instead. One column, because Spark would judge a record once for each.
    """
    value, text = F.col("value"), F.col("value").cast("string")
    parsed = _parsed(F.when(is_short() & F.is_valid_utf8(value), text), columns, keyed, detailed)
    if detailed:
        return F.when(~F.coalesce(is_plain(columns, keyed), F.lit(False)), parsed)
    cut = F.struct(F.split(text, ",").alias("pieces"), F.lit(None).cast("string").alias("reason"))
    return F.when(is_plain(columns, keyed), cut).otherwise(parsed)


def _parsed(text: Column, columns: Mapping[str, str], keyed: bool, detailed: bool) -> Column:
    """As `_judged`, from the type of each field. `text` is null where it is not to be parsed."""
    shape = f"ARRAY<STRUCT<{', '.join(f'{name}: VARIANT' for name in columns)}>>"

    def judged(fields: Column, types: Column, row: Column) -> Column:
        whole = [
            row[name].isNotNull() | _absent(types[name]) if name in NULLABLE else row[name].isNotNull()
            for name in columns
        ]
        good = reduce(lambda a, b: a & b, [*whole, *([F.col("key").isNotNull()] if keyed else [])])
        verdict = F.when(good, F.lit(None))
        for holds, reason, detail in _reasons(fields, types, row, columns, keyed):
            why = F.struct(F.lit(reason).alias("reason"), detail.alias("detail")) if detailed else F.lit(reason)
            verdict = verdict.when(holds, why)
        if detailed:
            return verdict
        return F.struct(_pieces(fields, row, columns).alias("pieces"), verdict.alias("reason"))

    def with_types(fields: Column) -> Column:
        types = F.struct(*(F.schema_of_variant(fields[name]).alias(name) for name in columns))
        return _let(types, lambda types: _let(_row(fields, types), lambda row: judged(fields, types, row)))

    def _row(fields: Column, types: Column) -> Column:
        return F.struct(*(_value(fields[name], types[name], kind).alias(name) for name, kind in columns.items()))

    # Spark stops at the end of the first object; between brackets a second one, or anything else, is an error
    found = F.from_json(F.concat(F.lit("["), text, F.lit("]")), shape, OPTIONS)
    return _let(found, lambda found: _let(F.when(F.size(found) == 1, found[0]), with_types))


def _pieces(fields: Column, row: Column, columns: Mapping[str, str]) -> Column:
    """The values in the pieces of a plain record, whatever a text holds; null where there is no value."""

    def text(name: str) -> Column:  # of an instant as it came: Spark would write it without a zone
        return (fields[name] if columns[name] == "TIMESTAMP" else row[name]).try_cast("string")

    return F.array(*(F.concat(F.lit(lead), text(name), F.lit(end)) for name, lead, end in frames(columns)))


def _let(value: Column, use: Callable[[Column], Column]) -> Column:
    """`use` of a value that is computed once. Columns on the way would be computed for every record, plain or not."""
    return F.transform(F.array(value), use)[0]


def _reasons(
    fields: Column, types: Column, row: Column, columns: Mapping[str, str], keyed: bool
) -> Iterator[tuple[Column, str, Column]]:
    """When a record that is no row has which reason, and what is wrong in words; of several the first."""
    value, size = F.col("value"), F.octet_length("value")
    yield value.isNull(), "tombstone", F.lit("no value")
    if keyed:
        yield F.col("key").isNull(), "null_key", F.lit("no key")
    too_long = F.concat(size.cast("string"), F.lit(f" bytes, of at most {MAX_VALUE_BYTES}"))
    yield size > MAX_VALUE_BYTES, "oversized", too_long
    yield fields.isNull(), "invalid_json", F.lit("not one JSON object in UTF-8")
    needed = [name for name in columns if name not in NULLABLE]
    missing = F.coalesce(*(F.when(_absent(types[name]), F.lit(f"no {name}")) for name in needed))
    yield reduce(lambda a, b: a | b, [_absent(types[name]) for name in needed]), "missing_field", missing
    wrong = (
        F.when(
            row[name].isNull() & ~_absent(types[name]),
            F.concat(F.lit(f"{name} is no {WORDS[kind]}: "), F.lower(types[name])),
        )
        for name, kind in columns.items()
    )
    yield F.lit(True), "wrong_type", F.coalesce(*wrong)


def _instant(text: Column) -> Column:
    """The instant that a text is; null where it has no time or no zone."""
    timed = (F.length(text) >= MIN_INSTANT_CHARACTERS) & (F.substring(text, 11, 1) == "T")
    zoned = text.endswith("Z") | F.substring(text, -6, 1).isin("+", "-")
    return F.when(timed & zoned, text.try_cast("timestamp"))


def _absent(found: Column) -> Column:
    return found.isNull() | (found == "VOID")  # not there, or null


def _value(field: Column, found: Column, kind: str) -> Column:
    """The field as the column's type; null when it is of another."""
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
