"""Postgres tables as the sink needs them: their types, whether they fit, and the statements that fill them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from psycopg import Connection
from pyspark.sql.types import DataType, StructType

from ledgerops.errors import UserError
from ledgerops.ledger.postgres import quoted

SIMPLE = {
    "string": "text",
    "boolean": "boolean",
    "byte": "smallint",
    "short": "smallint",
    "integer": "integer",
    "long": "bigint",
    "float": "real",
    "double": "double precision",
    "timestamp": "timestamp with time zone",
    "timestamp_ntz": "timestamp without time zone",
    "date": "date",
    "binary": "bytea",
}  # Spark's typeName: as Postgres' format_type says it
NESTED = ("struct", "array", "map")  # staged as JSON text
JSON = "jsonb"
ROW = "ledgerops_row"  # the column of a staging table that numbers its rows


def column_types(schema: StructType) -> dict[str, str]:
    """The Postgres type of each column. Raises UserError for a type that has none."""
    return {field.name: _type(field.name, field.dataType) for field in schema.fields}


def _type(name: str, found: DataType) -> str:
    kind = found.typeName()
    if kind == "decimal":
        return f"numeric({found.precision},{found.scale})"
    if kind in NESTED:
        return JSON
    if kind not in SIMPLE:
        raise UserError(f"column {name} is of type {kind}, which has no equivalent in Postgres; cast it in the job")
    return SIMPLE[kind]


@dataclass(frozen=True)
class Target:
    """A table that a job writes to."""

    name: str
    columns: Mapping[str, str]  # with their types
    keys: Sequence[str]  # the primary key; empty if rows are only added

    def prepare(self, connection: Connection[Any]) -> None:
        """Makes the table if there is none. Raises UserError if there is one that does not fit."""
        columns = connection.execute(
            "SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute "
            "WHERE attrelid = to_regclass(%s) AND attnum > 0 AND NOT attisdropped",
            [quoted(self.name)],
        )
        found: dict[str, str] = dict(columns.fetchall())
        if not found:
            key = f", PRIMARY KEY ({quoted(*self.keys)})" if self.keys else ""
            create(connection, f"CREATE TABLE IF NOT EXISTS {quoted(self.name)} ({_definitions(self.columns)}{key})")
            return
        for name, kind in self.columns.items():
            if name not in found:
                raise self._refused(f"has no column {name}")
            if found[name] != kind:
                raise self._refused(f"has {name} as {found[name]}, not as {kind}")
        if self.keys and not self._has_key(connection):
            raise self._refused(f"has no primary key or unique index on ({', '.join(self.keys)})")

    def fill(self, staging: str, route: str | None, order: str) -> str:
        """The statement that takes the rows of the table `staging` over; with `route` those whose value is %s.

        Of several rows of one key the one with the latest `order` (a column, where the table has it) is taken, then
        the one with the greatest values of the other columns, left to right.
        """
        into = f"INSERT INTO {quoted(self.name)} ({quoted(*self.columns)})"
        values = ", ".join(
            f"{quoted(name)}::{JSON}" if kind == JSON else quoted(name) for name, kind in self.columns.items()
        )
        rows = f"{values} FROM {quoted(staging)}" + (f" WHERE {quoted(route)} = %s" if route is not None else "")
        if not self.keys:
            return f"{into} SELECT {rows}"
        keys = quoted(*self.keys)
        others = sorted((name for name in self.columns if name not in self.keys), key=lambda name: name != order)
        latest = ", ".join([keys, *(f"{quoted(name)} DESC NULLS LAST" for name in others)])
        sets = ", ".join(f"{quoted(name)} = EXCLUDED.{quoted(name)}" for name in others)
        update = f"UPDATE SET {sets}" if others else "NOTHING"
        return f"{into} SELECT DISTINCT ON ({keys}) {rows} ORDER BY {latest} ON CONFLICT ({keys}) DO {update}"

    def _has_key(self, connection: Connection[Any]) -> bool:
        indexes = connection.execute(
            "SELECT array_agg(attname::text) FROM pg_index JOIN pg_attribute "
            "ON attrelid = indrelid AND attnum = ANY (indkey) WHERE indrelid = to_regclass(%s) AND indisunique "
            "AND indpred IS NULL GROUP BY indexrelid",
            [quoted(self.name)],
        )
        return any(set(columns) == set(self.keys) for (columns,) in indexes)

    def _refused(self, reason: str) -> UserError:
        return UserError(f"cannot write to table {self.name}: it {reason}; rename it, or alter it to fit")


def create(connection: Connection[Any], statement: str) -> None:
    """Runs a CREATE TABLE IF NOT EXISTS, which fails in Postgres when another runs at the same moment."""
    connection.execute("SELECT pg_advisory_xact_lock(hashtext('ledgerops tables'))")
    connection.execute(statement)


def create_staging(name: str, columns: Mapping[str, str]) -> str:
    """The statement that makes the table `name` with these columns, JSON as text, and the number of each row."""
    kinds = {ROW: "bigint"} | {column: "text" if kind == JSON else kind for column, kind in columns.items()}
    return f"CREATE TABLE {quoted(name)} ({_definitions(kinds)})"


def drop(name: str) -> str:
    """The statement that drops a table, if there is one."""
    return f"DROP TABLE IF EXISTS {quoted(name)}"


def tables_like(connection: Connection[Any], start: str) -> list[str]:
    """The tables of the current schema whose names start so."""
    found = "SELECT tablename FROM pg_tables WHERE schemaname = current_schema() AND starts_with(tablename, %s)"
    return [name for (name,) in connection.execute(found, [start])]


def repeated_rows(connection: Connection[Any], staging: str) -> int:
    """How many rows of a staging table are there again, because Spark ran a task twice and both wrote."""
    counted = connection.execute(f"SELECT count(*) - count(DISTINCT {ROW}) FROM {quoted(staging)}")
    return int(counted.fetchall()[0][0])


def routes_of(connection: Connection[Any], staging: str, route: str) -> list[str]:
    """The values of the column `route`, in an order that all writers share, so that none waits for the other."""
    asked = f"SELECT DISTINCT {quoted(route)} FROM {quoted(staging)} ORDER BY {quoted(route)}"
    return [value for (value,) in connection.execute(asked)]


def _definitions(columns: Mapping[str, str]) -> str:
    return ", ".join(f"{quoted(name)} {kind}" for name, kind in columns.items())
