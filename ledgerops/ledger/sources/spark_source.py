"""The Spark data source `ledger`: rows of a plan or of a prepared file, as a stream or as a bounded table.

Options (all text, as Spark has it, and not checked: `tables.open_source` gives them):
    plan                the plan's YAML text itself, which so reaches every executor; or
    path                an Arrow file that `arrow_file.keep` made, on storage that all executors share
    table               transactions (default); ad_events: one for each transaction, at the same offsets; or, of a
                        file, customers
    origin              seconds since the epoch at which the clock of plan or file stood at zero. The stream of a plan
                        needs it, and a restart must give the same one: then a checkpoint means the same rows, and what
                        fell due in between is there as backlog
    rate                of a file: rows a second; 0 (default): all at once
    limit               rows in all, after which the source is dry
    maxRowsPerTrigger   rows in a batch; default: all that are due
    rowsPerTask         rows for which a task of their own is worth its start

Offsets are per partition. Rows are handed out in the order of their due time over all partitions: every offset stands
for some first n rows, so a cap takes from each partition what is due there first, and no partition's event time runs
ahead of the others'.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow

from ledgerops.errors import UserError
from ledgerops.ledger.plan.generate import Generator
from ledgerops.ledger.plan.plan import parse_plan
from ledgerops.ledger.plan.schemas import TABLES
from ledgerops.ledger.sources.ads import ad_events
from ledgerops.ledger.sources.arrow_file import FileRows
from ledgerops.ledger.sources.input_partitions import WORTH_A_TASK, Slice, Split, splits
from ledgerops.ledger.sources.workers import make_importable

TOPIC, CUSTOMERS = "transactions", "customers"

Offsets = Mapping[str, Mapping[str, int]]  # topic, partition, next offset: as Kafka's source writes them


@dataclass(frozen=True)
class Options:
    """The options of a source; they travel to the workers."""

    plan: str
    path: str | None
    table: str
    origin: float
    rate: float
    limit: int | None
    max_rows: int | None
    rows_per_task: int

    @classmethod
    def of(cls, given: Mapping[str, str]) -> Options:
        """The options as Spark hands them on, whose names may have lost their case."""
        texts = {name.lower(): value for name, value in given.items()}
        return cls(
            plan=texts.get("plan", ""),
            path=texts.get("path"),
            table=texts.get("table", TOPIC),
            origin=float(texts.get("origin", 0.0)),
            rate=float(texts.get("rate", 0.0)),
            limit=int(texts["limit"]) if "limit" in texts else None,
            max_rows=int(texts["maxrowspertrigger"]) if "maxrowspertrigger" in texts else None,
            rows_per_task=int(texts.get("rowspertask", WORTH_A_TASK)),
        )

    @property
    def topic(self) -> str:
        """What the offsets belong to: ad events have those of their transactions."""
        return CUSTOMERS if self.table == CUSTOMERS else TOPIC


@lru_cache(maxsize=16)
def rows_of(plan: str, path: str | None, origin: float, rate: float) -> Generator | FileRows:
    """Kept for the life of a Python worker: a plan is parsed and its tables are made once for all batches."""
    return FileRows(Path(path), rate) if path is not None else Generator(parse_plan(plan), origin)


class LedgerSource(DataSource):  # type: ignore[misc]
    """Spark's format `ledger`, for bounded reads and streams."""

    def __init__(self, options: Mapping[str, str]) -> None:
        super().__init__(options)
        self.given = Options.of(options)

    @classmethod
    def name(cls) -> str:
        return "ledger"

    def schema(self) -> str:
        return TABLES[self.given.table]

    def reader(self, schema: Any) -> LedgerReader:
        return LedgerReader(self.given)

    def streamReader(self, schema: Any) -> LedgerStreamReader:
        return LedgerStreamReader(self.given)


class _Rows:
    """What both readers share: offsets, and the rows of a slice."""

    def __init__(self, options: Options) -> None:
        self.options = options

    @property
    def rows(self) -> Generator | FileRows:  # not an attribute, which would travel to the workers
        return rows_of(self.options.plan, self.options.path, self.options.origin, self.options.rate)

    @property
    def total(self) -> int | None:
        ends = [end for end in (self.options.limit, self.rows.total) if end is not None]
        return min(ends, default=None)

    def offsets_at(self, count: int) -> dict[str, dict[str, int]]:
        """The offsets that stand for the first `count` rows."""
        return {self.options.topic: {str(partition): head for partition, head in enumerate(self.rows.heads(count))}}

    def count_at(self, offsets: Offsets) -> int:
        """How many first rows the offsets stand for. Raises UserError when they are not of these rows."""
        count = sum(offsets.get(self.options.topic, {}).values())
        if self.offsets_at(count) != offsets:
            name = "plan" if self.options.path is None else "file"
            raise UserError(
                f"the offsets {json.dumps(offsets)} do not belong to this {name}: the checkpoint was written with "
                f"another {name}; use that {name}, or start over"
            )
        return count

    def between(self, start: Offsets, end: Offsets) -> list[Split]:
        """The tasks that read what lies between two offsets; small partitions share one."""
        first = start[self.options.topic]
        slices = (Slice(int(p), first.get(p, 0), head) for p, head in end[self.options.topic].items())
        return splits(slices, self.options.rows_per_task)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        # Spark makes up a partition when a bounded read has none
        if isinstance(partition, Split):
            for each in partition.slices:
                batches = self.rows.batches(*each)
                yield from map(ad_events, batches) if self.options.table == "ad_events" else batches


class LedgerReader(_Rows, DataSourceReader):  # type: ignore[misc]
    """The first `limit` rows; without a limit the whole file, or all of a plan that ends."""

    def partitions(self) -> list[Split]:
        if self.total is None:
            raise UserError("a bounded read of the source ledger needs the option limit: this plan never ends")
        return self.between(self.offsets_at(0), self.offsets_at(self.total))


class LedgerStreamReader(_Rows, DataSourceStreamReader, SupportsTriggerAvailableNow):  # type: ignore[misc]
    """What is due by the clock, which stood at zero at the option `origin`."""

    def __init__(self, options: Options) -> None:
        super().__init__(options)
        self.target: int | None = None  # where Trigger.AvailableNow ends
        self.reached = 0

    def initialOffset(self) -> dict[str, dict[str, int]]:
        return self.offsets_at(0)

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadMaxRows(self.options.max_rows) if self.options.max_rows else ReadAllAvailable()

    def prepareForTriggerAvailableNow(self) -> None:
        self.target = self._due()

    def latestOffset(self, start: Offsets, limit: ReadLimit) -> dict[str, dict[str, int]]:
        done = self.count_at(start)
        end = self._due() if self.target is None else self.target
        if isinstance(limit, ReadMaxRows):
            end = min(end, done + limit.max_rows)
        # a clock that was set back does not take rows back
        self.reached = max(done, end)
        return self.offsets_at(self.reached)

    def reportLatestOffset(self) -> dict[str, dict[str, int]]:
        return self.offsets_at(max(self.reached, self._due()))

    def partitions(self, start: Offsets, end: Offsets) -> list[Split]:
        return self.between(start, end)

    def _due(self) -> int:
        due = self.rows.due(time.time() - self.options.origin)
        return due if self.total is None else min(due, self.total)


def register(spark: SparkSession) -> None:
    """Makes the format `ledger` known to a session, and ledgerops to its workers. Any number of times."""
    make_importable(spark)
    spark.dataSource.register(LedgerSource)
