"""What a run reads: the embedded source with a load plan, or the replay of a transactions file."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, cast

import ledgerops
from ledgerops.errors import UserError
from ledgerops.ledger.plan import Plan, load_plan
from ledgerops.runfolder import Note

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from ledgerops.ledger.sources import Kind, Table

DATA = "LEDGEROPS_DATA"
PLAN = "default"


@dataclass(frozen=True, slots=True)
class Feed:
    """Chosen and checked before Spark starts."""

    kind: Kind
    title: str  # the plan's name, or the file's path
    digest: str  # changes when the rows would be others
    plan: Plan | None = None  # of the embedded source
    data: Path | None = None  # folder of the files to replay
    rate: float | None = None  # rows a second of a replay, 0 = all at once; None: the source's own

    def __str__(self) -> str:
        return f"the embedded source, plan {self.title}" if self.kind == "embedded" else f"a replay of {self.title}"

    @property
    def folder(self) -> str:
        """The name of the run's folder."""
        name = self.title if self.kind == "embedded" else "replay"
        return re.sub(r"[^A-Za-z0-9._-]+", "-", Path(name).stem) or "run"

    def note(self, now: float) -> Note:
        return Note(self.kind, self.title, self.digest, now)


def choose_feed(
    source: Kind | None,
    plan: str | None = None,
    scale: float | None = None,
    rate: float | None = None,
    environ: Mapping[str, str] = os.environ,
) -> Feed:
    """The feed that the flags and LEDGEROPS_DATA ask for. Raises UserError on a bad plan or a missing file."""
    data = environ.get(DATA)
    if source is None:
        source = "replay" if data and plan is None else "embedded"
    if source == "embedded":
        if rate is not None:
            raise UserError("--rate is for a replay; the embedded source takes --rate-scale")
        name = plan or PLAN
        loaded = load_plan(name, scale or 1.0)
        return Feed(source, name, _digest(loaded.text.encode()), plan=loaded)
    if plan is not None or scale is not None:
        raise UserError("--plan and --rate-scale are for the embedded source; a replay takes --rate")
    if not data:
        raise UserError(f"nothing to replay; set {DATA} to the folder that holds transactions.csv")
    file = Path(data) / "transactions.csv"
    try:
        return Feed(source, str(file), _digest(file.read_bytes()), data=Path(data), rate=rate)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise UserError(f"cannot read {file}: {reason}; {DATA} names the folder that holds it") from None


def open_tables(
    feed: Feed, note: Note, spark: SparkSession, names: Collection[str], max_rows: int | None, work_dir: Path
) -> dict[str, DataFrame]:
    """The streams that the jobs read, by name; transactions are instrumented."""
    from ledgerops.ledger.sources import open_source

    tables: dict[str, DataFrame] = {}
    for name in sorted(names):
        transactions = name == "transactions"
        rows = open_source(
            spark,
            cast("Table", name),
            kind=feed.kind,
            plan=feed.plan or PLAN,
            data_dir=feed.data,
            work_dir=work_dir,
            origin=note.origin,
            rate=feed.rate if transactions else None,
            max_rows_per_trigger=max_rows,
        )
        tables[name] = ledgerops.instrument(rows, event_time="event_time", key="customer_id") if transactions else rows
    return tables


def total_rows(feed: Feed, names: Collection[str], work_dir: Path) -> dict[str, int]:
    """How many rows there are in all, by table; empty when they never end."""
    if feed.kind == "embedded":
        return {}
    from ledgerops.ledger import sources

    totals = {
        name: sources.total_rows(cast("Table", name), kind=feed.kind, data_dir=feed.data, work_dir=work_dir)
        for name in names
    }
    return {name: total for name, total in totals.items() if total is not None}


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]
