"""Data sources over a prepared Arrow file: batch, and streaming at a chosen rate.

At time t the first `rate * (t - origin)` rows of the file have arrived. A limit of rows takes the next ones in file
order over all partitions, so the event time of one partition never runs ahead of another's. Keep the `origin` of the
first run on a restart: with a later one nothing new arrives until the clock has caught up with the checkpoint.

Options: `path` (of the Arrow file), `rate` (rows a second, 0: all at once), `origin` (seconds since the epoch),
`limit` (only the first rows of the file), `maxRowsPerTrigger`.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)

from ledgerops.errors import UserError
from ledgerops.ledger.sources import arrow_file
from ledgerops.ledger.sources.input_partitions import Slice, Split, splits


@dataclass(frozen=True)
class Options:
    """The options of a source, checked."""

    path: Path
    rate: float
    origin: float
    limit: int | None
    max_rows: int | None

    @classmethod
    def of(cls, options: Mapping[str, str]) -> Options:
        """UserError when one is missing or not a number in its range."""
        if "path" not in options:
            raise UserError("option path is missing: give the file that prepare() made")
        limit, max_rows = (_number(options, name, 1, None) for name in ("limit", "maxRowsPerTrigger"))
        return cls(
            path=Path(options["path"]),
            rate=_number(options, "rate", 0, 0) or 0.0,
            origin=_number(options, "origin", 0, 0) or 0.0,
            limit=None if limit is None else int(limit),
            max_rows=None if max_rows is None else int(max_rows),
        )

    @property
    def total(self) -> int:
        """Number of rows to deliver: those in the file, at most `limit`."""
        rows = arrow_file.order(self.path).total
        return rows if self.limit is None else min(rows, self.limit)


def _number(options: Mapping[str, str], name: str, least: float, default: float | None) -> float | None:
    if name not in options:
        return default
    try:
        value = float(options[name])
    except ValueError:
        value = float("nan")
    if not least <= value < float("inf"):
        raise UserError(f"option {name} must be a number of at least {least:g}, not {options[name]!r}")
    return value


def ranges(order: arrow_file.RowOrder, start: Sequence[int], end: Sequence[int]) -> list[Split]:
    """The tasks that read what lies between two offsets: rows of the file, which holds partition after partition."""
    found, base = [], 0
    for partition, (rows, low, high) in enumerate(zip(order.positions, start, end, strict=True)):
        found.append(Slice(partition, base + low, base + high))
        base += len(rows)
    return splits(found)


class _Rows:
    """What both readers share: the rows of a task."""

    def __init__(self, options: Options) -> None:
        self.options = options

    def read(self, partition: Split) -> Iterator[pa.RecordBatch]:
        for each in partition.slices:
            yield from arrow_file.batches(self.options.path, each.start, each.end)


class BatchReader(_Rows, DataSourceReader):  # type: ignore[misc]
    """All rows at once, whatever the rate."""

    def partitions(self) -> Sequence[Split]:
        order = arrow_file.order(self.options.path)
        return ranges(order, [0] * len(order.positions), order.offsets(self.options.total))


class StreamReader(_Rows, DataSourceStreamReader, SupportsTriggerAvailableNow):  # type: ignore[misc]
    """Offsets as Kafka writes them: {topic: {partition: next row}}."""

    def __init__(self, topic: str, options: Options) -> None:
        super().__init__(options)
        self.topic = topic
        self.target: int | None = None  # where Trigger.AvailableNow ends
        self.reached = 0

    def initialOffset(self) -> dict[str, dict[str, int]]:
        return self._offset(0)

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadMaxRows(self.options.max_rows) if self.options.max_rows else ReadAllAvailable()

    def prepareForTriggerAvailableNow(self) -> None:
        self.target = self._arrived()

    def latestOffset(self, start: dict[str, dict[str, int]], limit: ReadLimit) -> dict[str, dict[str, int]]:
        position = arrow_file.order(self.options.path).position(self._list(start))
        head = self._arrived() if self.target is None else self.target
        rows = limit.max_rows if isinstance(limit, ReadMaxRows) else None
        self.reached = arrow_file.advance(position, head, rows)
        return self._offset(self.reached)

    def reportLatestOffset(self) -> dict[str, dict[str, int]]:
        return self._offset(max(self.reached, self._arrived()))  # the head is never behind what was read

    def partitions(self, start: dict[str, dict[str, int]], end: dict[str, dict[str, int]]) -> Sequence[Split]:
        return ranges(arrow_file.order(self.options.path), self._list(start), self._list(end))

    def _arrived(self) -> int:
        return arrow_file.available(self.options.total, self.options.rate, time.time() - self.options.origin)

    def _offset(self, position: int) -> dict[str, dict[str, int]]:
        offsets = arrow_file.order(self.options.path).offsets(position)
        return {self.topic: {str(partition): offset for partition, offset in enumerate(offsets)}}

    def _list(self, offset: dict[str, dict[str, int]]) -> list[int]:
        by_partition = {int(partition): value for partition, value in offset[self.topic].items()}
        return [by_partition[partition] for partition in sorted(by_partition)]


class FileSource(DataSource):  # type: ignore[misc]
    """A source over one Arrow file; a subclass gives its name, topic and columns (Spark DDL)."""

    topic: ClassVar[str]
    columns: ClassVar[str]

    def schema(self) -> str:
        return self.columns

    def reader(self, schema: object) -> BatchReader:
        return BatchReader(Options.of(self.options))

    def streamReader(self, schema: object) -> StreamReader:
        return StreamReader(self.topic, Options.of(self.options))
