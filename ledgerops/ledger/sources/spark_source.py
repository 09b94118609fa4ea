"""The Spark data source `ledger`: a plan's transactions as a stream with offsets per partition, or as a bounded table.

Options (all text, as Spark has it):
    plan                the plan's YAML text itself, which so reaches every executor
    table               transactions (default), or ad_events: one for each transaction, at the same offsets
    origin              seconds since the epoch at which the plan's clock stood at zero. A stream needs it, and a
                        restart must give the same one: then a checkpoint means the same rows, and what fell due in
                        between is there as backlog
    limit               rows in all, after which the source is dry
    maxRowsPerTrigger   rows in a batch; default: all that are due
    startingOffsets, endingOffsets   of a bounded read, in the form of the progress record

Rows are handed out in the order of their due time over all partitions: every offset stands for some first n rows, so a
cap takes from each partition what is due there first, and no partition's event time runs ahead of the others'.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow

from ledgerops.errors import UserError
from ledgerops.ledger.plan.generate import Generator
from ledgerops.ledger.plan.plan import parse_plan
from ledgerops.ledger.plan.schemas import TABLES
from ledgerops.ledger.sources.ads import ad_events
from ledgerops.ledger.sources.input_partitions import WORTH_A_TASK, Slice, Split, splits
from ledgerops.ledger.sources.workers import make_importable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TOPIC = "transactions"

Offsets = Mapping[str, Mapping[str, int]]  # topic, partition, next offset: as Kafka's source writes them


@dataclass(frozen=True)
class Options:
    """The options of a source, checked; they travel to the workers."""

    plan: str
    table: str
    origin: float | None
    limit: int | None
    max_rows: int | None
    start: str | None
    end: str | None
    rows_per_task: int | None = None

    @classmethod
    def of(cls, given: Mapping[str, str]) -> Options:
        """Raises UserError that names the option."""
        by_name = {name.lower(): value for name, value in given.items()}
        if not by_name.get("plan"):
            raise UserError("the source ledger needs the option plan: the plan's YAML text")
        return cls(
            plan=by_name["plan"],
            table=_table(by_name.get("table", TOPIC)),
            origin=_number(by_name, "origin"),
            limit=_whole(by_name, "limit", 0),
            max_rows=_whole(by_name, "maxRowsPerTrigger", 1),
            start=by_name.get("startingoffsets"),
            end=by_name.get("endingoffsets"),
            rows_per_task=_whole(by_name, "rowsPerTask", 1),
        )


@lru_cache(maxsize=16)
def generator(plan: str, origin: float) -> Generator:
    """Kept for the life of a Python worker: a plan is parsed and its tables are made once, not once a batch."""
    return Generator(parse_plan(plan), origin)


def offsets_at(rows: Generator, count: int) -> dict[str, dict[str, int]]:
    """The offsets that stand for the first `count` rows, of the partitions that there are by then."""
    heads = rows.layout.heads(count)
    return {TOPIC: {str(p): heads[p] for p in range(rows.layout.known(count))}}


def count_at(rows: Generator, offsets: Offsets) -> int:
    """How many first rows the offsets stand for. Raises UserError when they are not of this plan."""
    count = sum(offsets.get(TOPIC, {}).values())
    if offsets_at(rows, count) != offsets:
        raise UserError(
            f"the offsets {json.dumps(offsets)} do not belong to this plan: the checkpoint was written with "
            "another plan; use that plan, or start over"
        )
    return count


def between(start: Offsets, end: Offsets, rows_per_task: int | None = None) -> list[Split]:
    """The tasks that read what lies between two offsets; small partitions share one of up to `rows_per_task` rows."""
    first = start[TOPIC]
    slices = (Slice(int(p), first.get(p, 0), head) for p, head in end[TOPIC].items())
    return splits(slices, rows_per_task or WORTH_A_TASK)


class LedgerSource(DataSource):  # type: ignore[misc]
    """Spark's format `ledger`, for bounded reads and streams."""

    @classmethod
    def name(cls) -> str:
        return "ledger"

    def schema(self) -> str:
        return TABLES[Options.of(self.options).table]

    def reader(self, schema: Any) -> LedgerReader:
        return LedgerReader(Options.of(self.options))

    def streamReader(self, schema: Any) -> LedgerStreamReader:
        return LedgerStreamReader(Options.of(self.options))


class _Rows:
    """What both readers share: the rows of a slice."""

    def __init__(self, options: Options) -> None:
        self.options = options

    @property
    def rows(self) -> Generator:
        return generator(self.options.plan, self.options.origin or 0.0)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        # Spark makes up a partition when a bounded read has none
        if isinstance(partition, Split):
            for each in partition.slices:
                transactions = self.rows.batches(*each)
                yield from map(ad_events, transactions) if self.options.table == "ad_events" else transactions


class LedgerReader(_Rows, DataSourceReader):  # type: ignore[misc]
    """From `startingOffsets` (default: the beginning) to `endingOffsets` (default: `limit` rows)."""

    def partitions(self) -> list[Split]:
        options, rows = self.options, self.rows
        if options.end is None and options.limit is None:
            raise UserError("a bounded read of the source ledger needs the option limit or endingOffsets")
        start = _offsets("startingOffsets", options.start) or offsets_at(rows, 0)
        limit = options.limit or 0
        limit = limit if rows.total is None else min(limit, rows.total)
        return between(start, _offsets("endingOffsets", options.end) or offsets_at(rows, limit))


class LedgerStreamReader(_Rows, DataSourceStreamReader, SupportsTriggerAvailableNow):  # type: ignore[misc]
    """What is due by the plan's clock, which stood at zero at the option `origin`."""

    def __init__(self, options: Options) -> None:
        super().__init__(options)
        self.target: int | None = None  # where Trigger.AvailableNow ends
        self.reached = 0

    def initialOffset(self) -> dict[str, dict[str, int]]:
        return offsets_at(self.rows, 0)

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadMaxRows(self.options.max_rows) if self.options.max_rows else ReadAllAvailable()

    def prepareForTriggerAvailableNow(self) -> None:
        self.target = self._due()

    def latestOffset(self, start: Offsets, limit: ReadLimit) -> dict[str, dict[str, int]]:
        done = count_at(self.rows, start)
        end = self._due() if self.target is None else self.target
        if isinstance(limit, ReadMaxRows):
            end = min(end, done + limit.max_rows)
        # a clock that was set back does not take rows back
        self.reached = max(done, end)
        return offsets_at(self.rows, self.reached)

    def reportLatestOffset(self) -> dict[str, dict[str, int]]:
        return offsets_at(self.rows, max(self.reached, self._due()))

    def partitions(self, start: Offsets, end: Offsets) -> list[Split]:
        return between(start, end, self.options.rows_per_task)

    def _due(self) -> int:
        if self.options.origin is None:
            raise UserError(
                "a stream of the source ledger needs the option origin: the time at which its clock starts, in seconds "
                "since the epoch"
            )
        due = self.rows.due(time.time() - self.options.origin)
        return due if self.options.limit is None else min(due, self.options.limit)


def register(spark: SparkSession) -> None:
    """Makes the format `ledger` known to a session, and ledgerops to its workers. Any number of times."""
    make_importable(spark)
    spark.dataSource.register(LedgerSource)


def _table(name: str) -> str:
    if name not in (TOPIC, "ad_events"):
        raise UserError(f"option table of the source ledger: expected {TOPIC} or ad_events, got {name!r}")
    return name


def _number(given: Mapping[str, str], name: str) -> float | None:
    text = given.get(name.lower())
    if text is None:
        return None
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0.0 <= value < math.inf:
        raise UserError(f"option {name} of the source ledger: expected a number >= 0, got {text!r}")
    return value


def _whole(given: Mapping[str, str], name: str, least: int) -> int | None:
    text = given.get(name.lower())
    if text is None:
        return None
    if not (text.isascii() and text.isdigit() and int(text) >= least):
        raise UserError(f"option {name} of the source ledger: expected a whole number >= {least}, got {text!r}")
    return int(text)


def _offsets(name: str, text: str | None) -> dict[str, dict[str, int]] | None:
    if text is None:
        return None
    try:
        return {TOPIC: {str(int(p)): int(head) for p, head in json.loads(text)[TOPIC].items()}}
    except (ValueError, TypeError, KeyError, AttributeError):
        raise UserError(
            f'option {name} of the source ledger: expected {{"{TOPIC}": {{"0": 123, ...}}}}, got {text!r}'
        ) from None
