"""The state of one query as a document: operators, stores, rows, bytes, keys and growth.

The document (version 1) has `checkpoint`, `query_id`, `provider` (rocksdb, hdfs or a class), `batch` (that was read),
`kept` (`first`, `last` and the number `batches`) and `operators`. Each operator has `operator` (its id), `name`,
`partitions`, `format` (null where there is but one), `rows` (as Spark's metric counts them), `bytes`, `files` and
`stores`. Each of the files, one for each partition and store, has `partition`, `store`, `bytes`, `snapshot_bytes`,
`change_bytes`, `snapshot_batch` and `snapshot_age` (in batches; null without a snapshot). Each of the stores has
`store`, `folder` (the store of the files), `kind`, `ttl`, `counted`, `key` and `value` (columns with `name` and
`type`), `rows`, `keys`, `skew` (largest partition over the median), `partitions` (`partition`, `rows`), `timers`
(`first`, `last`, ISO 8601), `growth` (`since`, `until`, `source`, `added`, `removed`, `batches` with `batch` and
`rows`), `top` (`key`, `rows`, `bytes`) and `sample`. What was not asked for or cannot be had is null.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from pyspark.sql import SparkSession

from ledgerops.checkpoint.growth import growth
from ledgerops.checkpoint.listing import head, operator_document
from ledgerops.checkpoint.operators import Operator, View
from ledgerops.checkpoint.reader import Checkpoint, open_checkpoint
from ledgerops.checkpoint.state_rows import SPARK_ERRORS, StateReader, reason, temporary_conf
from ledgerops.errors import UserError, did_you_mean
from ledgerops.model.spark_progress import format_instant

MAX_ATTEMPTS = 3  # to read what a query is removing
MAX_SERIES_BATCHES = 100  # as many as Spark keeps by default


@dataclass(frozen=True)
class Selection:
    """What to read; None: all, or the newest."""

    operator: int | None = None
    store: str | None = None
    batch: int | None = None
    since: int | None = None
    top: int = 5
    key: str | None = None
    rows: int = 0
    show_keys: bool = False


@dataclass(frozen=True)
class Choice:
    """What of a checkpoint is to be read, checked against what is there."""

    operators: tuple[tuple[Operator, tuple[View, ...]], ...]
    batch: int
    since: int | None  # None: there is no earlier batch


def choose(checkpoint: Checkpoint, wanted: Selection) -> Choice:
    """Raises UserError where something wanted is not there, and says what is."""
    ids = [operator.id for operator in checkpoint.operators]
    if wanted.operator is not None and wanted.operator not in ids:
        raise UserError(f"no operator {wanted.operator} in {checkpoint.path}; there are {_listed(ids)}")
    batch = checkpoint.kept[-1] if wanted.batch is None else wanted.batch
    for number in (batch, *(() if wanted.since is None else (wanted.since,))):
        if number not in checkpoint.kept:
            raise UserError(f"no state of batch {number} in {checkpoint.path}; it has {checkpoint.span}")
    if wanted.since is not None and wanted.since >= batch:
        raise UserError(f"--since {wanted.since} must be before batch {batch}, the one that is shown")
    earlier = [number for number in checkpoint.kept if number < batch][-MAX_SERIES_BATCHES:]
    chosen = [operator for operator in checkpoint.operators if wanted.operator in (None, operator.id)]
    found = [(operator, _views(operator, wanted.store)) for operator in chosen]
    if wanted.store is not None and not any(views for _, views in found):
        names = [view.name for operator in chosen for view in operator.views]
        hint = did_you_mean(wanted.store, names, "")
        there = f"{hint and f'{hint} '}there are {_listed(names)}"
        raise UserError(f"no store {wanted.store!r} in {checkpoint.path}; {there}")
    since = wanted.since if wanted.since is not None else next(iter(earlier), None)
    return Choice(tuple((operator, views) for operator, views in found if views), batch, since)


def summarize(path: Path, wanted: Selection, session: SparkSession) -> dict[str, Any]:
    """The document. Raises UserError when something wanted is not there or cannot be read."""
    for _ in range(MAX_ATTEMPTS):
        checkpoint = open_checkpoint(path)
        choice = choose(checkpoint, wanted)
        _check_schemas(checkpoint, choice)
        _ = session.streams  # brings up the coordinator of state stores, which RocksDB's reader reports to
        try:
            with temporary_conf(session, checkpoint.conf):  # under which the state was written
                return _document(checkpoint, choice, wanted, session)
        except SPARK_ERRORS as error:
            now = open_checkpoint(path).kept
            if choice.batch in now and choice.since in (None, *now):
                raise UserError(f"Spark cannot read the state in {path}: {reason(error)}") from None
    raise UserError(
        f"the query removes batches from {path} faster than they can be read; read less at once (--store, --top 0), "
        "or keep more batches (spark.sql.streaming.minBatchesToRetain)"
    )


def _document(checkpoint: Checkpoint, choice: Choice, wanted: Selection, session: SparkSession) -> dict[str, Any]:
    operators = []
    for operator, views in choice.operators:
        readers = [StateReader(session, checkpoint, operator, view, choice.batch) for view in views]
        stores = [_store(reader, choice, wanted) for reader in readers]
        whole = len(views) == len(operator.views)
        operators.append(operator_document(checkpoint, operator, choice.batch, stores, whole=whole))
    return {**head(checkpoint), "batch": choice.batch, "operators": operators}


def _store(reader: StateReader, choice: Choice, wanted: Selection) -> dict[str, Any]:
    view, counts = reader.view, reader.count()
    rows = sum(number for number, _ in counts.values())
    # of a join's index everything is known from the rows, unless it was asked for
    plain = not view.counted and view.kind == "store" and wanted.store is None
    timers = reader.timers() if view.kind == "timers" else None
    grown = None
    if choice.since is not None and not plain:
        grown = growth(reader, reader.checkpoint.of(reader.operator, view.store), choice.since, rows)
    return {
        "store": view.name,
        "folder": view.store,
        "kind": view.kind,
        "ttl": view.ttl,
        "counted": view.counted,
        **reader.schema(),
        "rows": rows,
        "keys": sum(number for _, number in counts.values()) if view.kind in ("list", "map") else None,
        "skew": skew([number for number, _ in counts.values()]),
        "partitions": [{"partition": partition, "rows": number} for partition, (number, _) in sorted(counts.items())],
        "timers": timers and {"first": format_instant(timers[0] / 1000), "last": format_instant(timers[1] / 1000)},
        "growth": grown,
        "top": reader.top(wanted.top, wanted.key, wanted.show_keys) if wanted.top and rows and not plain else None,
        "sample": reader.sample(wanted.rows, wanted.show_keys) if wanted.rows and not plain else None,
    }


def skew(rows: Sequence[int]) -> float | None:
    """The largest partition over the median one; None where that is meaningless (one partition, or an empty median)."""
    middle = median(rows) if len(rows) > 1 else 0
    return round(max(rows) / middle, 3) if middle else None


def _views(operator: Operator, store: str | None) -> tuple[View, ...]:
    """All views, or those named: `left` and `right` stand for the rows of a join's side."""
    names = (store, f"{store}-keyWithIndexToValue")
    return tuple(view for view in operator.views if store is None or view.name in names)


def _listed(values: Sequence[object]) -> str:
    return ", ".join(str(value) for value in values)


def _check_schemas(checkpoint: Checkpoint, choice: Choice) -> None:
    """Spark notes the state's schema with its full path: a checkpoint that was moved cannot be read where it is."""
    for operator, _ in choice.operators:
        for noted in operator.schema_files:
            file = Path(re.sub(r"^file:/+", "/", noted))
            if noted.startswith(("file:", "/")) and not file.is_file():
                raise UserError(
                    f"{checkpoint.path} has no schema of operator {operator.id}: Spark looks for it at {file}; was the "
                    "checkpoint moved? read it where it was written"
                )
