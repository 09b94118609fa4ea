"""What a run reads: the embedded source with a load plan, a replay of a file, Kafka's topics or a landing folder."""

import hashlib
import os
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, cast

from pyspark.sql import DataFrame, SparkSession

import ledgerops
from ledgerops.common.kafka_offsets import read_heads
from ledgerops.errors import UserError
from ledgerops.ledger.plan.plan import LoadPlan, load_plan
from ledgerops.ledger.plan.schemas import REJECTS_TABLE, SIDES, TABLES
from ledgerops.ledger.run.run_dir import RunNote
from ledgerops.ledger.sources import kafka, landing
from ledgerops.ledger.sources.csv_file import DATA, content_hash, data_folder
from ledgerops.ledger.sources.kafka import Cluster, Topics, describe_cluster
from ledgerops.ledger.sources.landing import tables_in
from ledgerops.ledger.sources.tables import Table, open_source, prepare

SourceKind = Literal["embedded", "replay", "kafka", "files"]
ROWS = frozenset(TABLES) - {REJECTS_TABLE}
KEYS = {"transactions": "customer_id", "debits": "customer_id", "credits": "customer_id", "ad_events": "ad_id"}


@dataclass(frozen=True, slots=True)
class RunSource:
    """Chosen and checked before Spark starts."""

    kind: SourceKind
    title: str  # the plan's name, the file's or folder's path, or Kafka's addresses
    digest: str  # changes when the rows would be others
    plan: LoadPlan | None = None  # of the embedded source
    data: Path | None = None  # folder of the files to replay
    rate: float | None = None  # rows a second of a replay, 0 = all at once; None: the source's own
    kafka: Topics | None = None
    landing: Path | None = None
    cluster: Cluster | None = None  # what Kafka says of the topics that are read

    def __str__(self) -> str:
        return {
            "embedded": f"the embedded source, plan {self.title}",
            "replay": f"a replay of {self.title}",
            "kafka": f"Kafka at {self.title}",
            "files": f"the landing folder {self.title}",
        }[self.kind]

    @property
    def folder(self) -> str:
        """The name of the run's folder."""
        name = self.title if self.kind == "embedded" else self.kind
        if self.kafka is not None and self.kafka.prefix:
            name = f"kafka-{self.kafka.prefix}".rstrip(".-_")  # a dot would look like the ending of a plan's file
            return re.sub(r"[^A-Za-z0-9._-]+", "-", name)
        return re.sub(r"[^A-Za-z0-9._-]+", "-", Path(name).stem) or "run"

    @property
    def offered(self) -> frozenset[str]:
        """The tables that jobs may read."""
        if self.landing is not None:
            found = tables_in(self.landing)
            return found | (set(SIDES) if "transactions" in found else set())
        return ROWS | {REJECTS_TABLE} if self.kind == "kafka" else ROWS

    def note(self, now: float) -> RunNote:
        """The note to store with a run that starts at `now`, in seconds since the epoch."""
        return RunNote(
            self.kind, self.title, self.digest, now, topics=dict(self.cluster.topics) if self.cluster else {}
        )


def choose_source(
    kind: SourceKind | None,
    plan: str | None = None,
    scale: float | None = None,
    rate: float | None = None,
    environ: Mapping[str, str] = os.environ,
    kafka: Topics | None = None,
    landing: Path | None = None,
) -> RunSource:
    """The source that the flags and LEDGEROPS_DATA ask for. Raises UserError on a bad plan or a missing file.

    Kafka is not asked yet: see `describe_topics`.
    """
    data = data_folder(environ)
    if kind is None:
        kind = "replay" if data and plan is None else "embedded"
    if kind == "embedded":
        if rate is not None:
            raise UserError("--rate is for a replay; the embedded source takes --rate-scale")
        name = plan or "default"
        loaded = load_plan(name, scale)
        return RunSource(kind, name, loaded.digest, plan=loaded)
    if kind == "replay":
        if plan is not None or scale is not None:
            raise UserError("--plan and --rate-scale are for the embedded source; a replay takes --rate")
        if data is None:
            raise UserError(f"nothing to replay; set {DATA} to the folder that holds transactions.csv")
        file = data / "transactions.csv"
        return RunSource(kind, str(file), content_hash(file), data=data, rate=rate)
    if plan is not None or scale is not None or rate is not None:
        raise UserError(f"--plan, --rate-scale and --rate are not for --source {kind}, which sets its own rate")
    if kind == "files":
        if landing is None:
            raise UserError("--source files needs --landing FOLDER")
        tables_in(landing)  # raises UserError for a folder without tables
        return RunSource(kind, str(landing), _digest(os.path.realpath(landing).encode()), landing=landing)
    if kafka is None:
        raise UserError("--source kafka needs --bootstrap-servers HOST:PORT")
    return RunSource(kind, kafka.client.servers, "", kafka=kafka)


def describe_topics(source: RunSource, names: Collection[str]) -> RunSource:
    """The source with what its cluster says of itself and of the topics of these tables; others as they are.

    Raises UserError when no broker answers or a topic is not there.
    """
    if source.kafka is None:
        return source
    cluster = describe_cluster(source.kafka.client, {topic for name in names for topic in source.kafka.of(name)})
    digest = _digest(f"{cluster.id} {source.kafka.prefix}".encode())
    return replace(source, digest=digest, cluster=cluster)


def read_source_heads(source: RunSource, names: Collection[str], work_dir: Path) -> dict[tuple[str, str], int]:
    """Where the topics, or the files of a replay, that these tables are read from end now, by topic and partition.

    Empty for other sources. Raises UserError.
    """
    if source.kafka is not None and source.cluster is not None:
        return read_heads(source.kafka.client, source.cluster.partitions)
    if source.kind != "replay":
        return {}
    read: set[Table] = {"customers" if name == "customers" else "transactions" for name in names}
    return {
        (table, str(partition)): count
        for table in read
        for partition, count in enumerate(prepare(table, None, source.data, work_dir).counts)
    }


def open_tables(
    source: RunSource, note: RunNote, spark: SparkSession, names: Collection[str], max_rows: int | None, work_dir: Path
) -> dict[str, DataFrame]:
    """The streams that the jobs read, by name; those with an event time are instrumented.

    `max_rows` bounds what a batch reads of each stream: rows, or files of a landing folder.
    """
    opened: dict[str, DataFrame] = {}
    tables: dict[str, DataFrame] = {}
    for name in sorted(names):
        # Kafka has topics of their own for the two sides; elsewhere they share one stream of transactions
        base = "transactions" if name in SIDES and source.kafka is None else name
        if base not in opened:
            opened[base] = _open(source, note, spark, base, max_rows, work_dir)
        rows = opened[base] if base == name else opened[base].where(f"type = '{SIDES[name]}'")
        if name in KEYS:
            label = None if name == "transactions" else name
            rows = ledgerops.instrument(rows, event_time="event_time", key=KEYS[name], name=label)
        tables[name] = rows
    return tables


def _open(
    source: RunSource, note: RunNote, spark: SparkSession, name: str, max_rows: int | None, work_dir: Path
) -> DataFrame:
    observation = f"ledgerops_rejects_{name}"
    if source.kafka is not None:
        return kafka.open_table(spark, source.kafka, name, max_rows, observation)
    if source.landing is not None:
        return landing.open_table(spark, source.landing, name, max_rows, observation)
    return open_source(
        spark,
        cast("Table", name),
        plan=source.plan,
        data=source.data,
        work_dir=work_dir,
        origin=note.origin,
        rate=None if name == "customers" else source.rate,
        max_rows_per_trigger=max_rows,
    )


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]
