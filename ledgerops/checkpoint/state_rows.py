"""A view of the state as a DataFrame, through Spark's statestore reader, and the figures that are taken of it."""

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from typing import Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from ledgerops.checkpoint.columns import SparkType, masked, names_in, shown_key, time_like
from ledgerops.checkpoint.operators import Operator, View
from ledgerops.checkpoint.reader import Checkpoint
from ledgerops.errors import UserError

SPARK_ERRORS = (Py4JError, PySparkException)  # when Spark cannot read
KEYS = ("key", "user_map_key")  # of each row, and of each entry of a map
VALUES = {"list": "list_element", "map": "user_map_value", "timers": "expiration_timestamp_ms"}
INSTANT = {"timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX", "ignoreNullFields": "false"}


def reason(error: Exception) -> str:
    """The innermost cause in one line."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    causes = [line.removeprefix("Caused by: ") for line in lines if line.startswith("Caused by: ")]
    text = re.sub(r"^[\w.$]+(Exception|Error): ", "", (causes or lines or [type(error).__name__])[-1 if causes else 0])
    return text if len(text) <= 300 else f"{text[:299]}…"


@contextmanager
def temporary_conf(session: SparkSession, conf: Mapping[str, str]) -> Iterator[None]:
    """The session with these settings, and as it was afterwards. A query keeps those that it was started with."""
    before = {key: session.conf.get(key, None) for key in conf}
    try:
        for key, value in conf.items():
            session.conf.set(key, value)
        yield
    finally:
        for key, old in before.items():
            session.conf.unset(key) if old is None else session.conf.set(key, old)


class StateReader:
    """Reads one view at one batch."""

    def __init__(
        self, session: SparkSession, checkpoint: Checkpoint, operator: Operator, view: View, batch: int
    ) -> None:
        self.session, self.checkpoint, self.operator, self.view, self.batch = session, checkpoint, operator, view, batch

    def frame(self, batch: int | None = None) -> DataFrame:
        """The rows at a batch."""
        rows = self._source().option("batchId", self.batch if batch is None else batch).load()
        if "joinSide" not in self.view.options:
            return rows
        # Spark's rows of a side have a column more than their schema, upon which to_json fails
        names = rows.schema["value"].dataType.fieldNames()
        return rows.withColumn("value", F.struct(*(F.col("value").getField(name).alias(name) for name in names)))

    def changes(self, first: int) -> DataFrame:
        """What the batches from `first` on wrote and removed."""
        source = self._source().option("readChangeFeed", "true")
        return source.option("changeStartBatchId", first).option("changeEndBatchId", self.batch).load()

    def _source(self) -> Any:
        source = self.session.read.format("statestore").option("path", str(self.checkpoint.path))
        return source.option("operatorId", self.operator.id).options(**self.view.options)

    @cached_property
    def rows(self) -> DataFrame:
        """The rows at the reader's own batch, not collected. Raises SPARK_ERRORS."""
        return self.frame()

    @cached_property
    def _fields(self) -> dict[str, Any]:
        return {field.name: field.dataType for field in self.rows.schema.fields}

    @cached_property
    def key_types(self) -> dict[str, Any]:
        """Spark's data type of each column of the key, by its name. Raises SPARK_ERRORS."""
        return {field.name: field.dataType for field in self._fields["key"].fields}

    @property
    def value(self) -> str:
        """The name of the column that holds the value, which depends on the kind of the view."""
        return VALUES.get(self.view.kind, "value")

    def schema(self) -> dict[str, list[dict[str, str]]]:
        """The columns of key and value, each with its name and type; a map's own key is a column of the key."""
        key = [*self.key_types.items(), *([("user_map_key", self._fields["user_map_key"])] if self._is_map else [])]
        value = self._fields[self.value]
        if self.view.ttl and [field.name for field in getattr(value, "fields", ())] == ["value", "ttlExpirationMs"]:
            value = value.fields[0].dataType
        named = [(field.name, field.dataType) for field in value.fields] if hasattr(value, "fields") else None
        return {
            part: [{"name": name, "type": data_type.simpleString()} for name, data_type in columns]
            for part, columns in (("key", key), ("value", named or [(self.value, value)]))
        }

    def count(self) -> dict[int, tuple[int, int]]:
        """Rows and keys of each partition, the empty ones too. Only lists and maps have several rows a key."""
        rows = self.rows
        if self.view.kind in ("list", "map"):  # all rows of a key are in one partition
            counted = rows.groupBy("partition_id", "key").agg(F.count("*").alias("rows"))
            found = counted.groupBy("partition_id").agg(F.sum("rows"), F.count("*")).collect()
        else:
            found = rows.groupBy("partition_id").agg(F.count("*"), F.count("*")).collect()
        counts = {row[0]: (row[1], row[2]) for row in found}
        return {partition: counts.get(partition, (0, 0)) for partition in range(self.operator.partitions)}

    def total(self, batch: int) -> int:
        """The number of rows at a batch. Runs a Spark job; raises SPARK_ERRORS."""
        return int(self.frame(batch).count())

    def key_columns(self, chosen: str | None) -> list[str]:
        """The columns by which keys are distinguished: the one chosen, else all that are not times or a join's index.
        Raises UserError when the key has no such column."""
        if chosen is not None:
            if chosen not in self.key_types:
                raise UserError(
                    f"no column {chosen!r} in the key of {self.view.name}; there are {', '.join(self.key_types)}"
                )
            return [chosen]
        plain = [
            name
            for name, data_type in self.key_types.items()
            if not time_like(data_type) and not (self.view.kind == "side" and name == "index")
        ]
        return plain or list(self.key_types)

    def top(self, number: int, chosen: str | None, show: bool) -> list[dict[str, Any]]:
        """The keys with the most rows, then the largest values: `key` with its columns (hashed unless `show`), `rows`,
        and `bytes` of the values as JSON text."""
        names = self.key_columns(chosen)
        columns = [self._text(F.col("key").getField(name), self.key_types[name]) for name in names]
        size = F.coalesce(F.octet_length(self._json(self.value)), F.lit(0))
        found = (
            self.rows.groupBy(*(column.alias(f"k{place}") for place, column in enumerate(columns)))
            .agg(F.count("*").alias("rows"), F.sum(size).alias("bytes"))
            .orderBy(F.desc("rows"), F.desc("bytes"), *(f"k{place}" for place in range(len(names))))
            .limit(number)
            .collect()
        )
        return [
            {
                "key": {name: shown_key(row[place], self.key_types[name], show) for place, name in enumerate(names)},
                "rows": row["rows"],
                "bytes": row["bytes"],
            }
            for row in found
        ]

    def sample(self, number: int, show: bool) -> list[Any]:
        """Some rows; without `show` keys and texts are hashed, and what could reveal a key: columns named like a part
        of it, and all columns of a join's side, as the join does not tell which are its keys."""
        rows = self.rows.drop("partition_id")
        found = rows.select(F.to_json(F.struct(*rows.columns), INSTANT)).limit(number).collect()
        values = [json.loads(row[0]) for row in found]
        return values if show else [self._masked(value) for value in values]

    def _masked(self, row: dict[str, Any]) -> dict[str, Any]:
        keys = [self._fields[name] for name in KEYS if name in self._fields]
        secret = None if self.view.kind == "side" else frozenset(name for each in keys for name in names_in(each))
        return {name: masked(each, self._fields[name], None if name in KEYS else secret) for name, each in row.items()}

    def timers(self) -> tuple[int, int] | None:
        """The first and the last timer (milliseconds since the epoch); None without timers."""
        [row] = self.rows.agg(F.min(self.value), F.max(self.value)).collect()
        return None if row[0] is None else (row[0], row[1])

    @property
    def _is_map(self) -> bool:
        return "user_map_key" in self._fields

    def identity(self) -> Column:
        """What distinguishes one row from another."""
        return F.struct("key", "user_map_key") if self._is_map else F.struct("key")

    def _json(self, name: str) -> Column:
        return F.to_json(F.struct(name)) if hasattr(self._fields[name], "fields") else F.col(name).cast("string")

    def _text(self, column: Column, data_type: SparkType) -> Column:
        return F.to_json(F.struct(column.alias("c")), INSTANT) if time_like(data_type) else column.cast("string")
