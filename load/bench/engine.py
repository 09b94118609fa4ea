"""The ledger's jobs against the engine that runs them: our job, the same in a few lines of PySpark, and Flink SQL.

Figures are CPU seconds of all processes but the broker. They include what a JVM compiles: all kinds take turns in the
same. A batch of Spark costs CPU time however few rows it has (decision 43), hence the many rows.
"""

import shutil
import statistics
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from ledgerops.errors import UserError
from load.bench.flink import Flink, fetch
from load.bench.lines import NO, UNKNOWN, YES, Compared, Line, compare
from load.bench.producer import send_process
from load.bench.runs import embedded, take_turns
from load.bench.session import session, start_noop
from load.bench.usage import Meter

KAFKA, EMBEDDED = "Kafka", "the embedded source"
ROWS, ROUNDS, BATCHES = {KAFKA: 6_000_000, EMBEDDED: 300_000}, 4, 3
PAIRS, PAIRS_ROWS = "debit_credit_pairs", 300_000  # from any source: pairs grow with the square of the rows
OURS, AGAIN, PLAIN, FLINK = "our job", "our job again", "PySpark", "Flink SQL"
MAX_SECONDS = {KAFKA: 240.0, EMBEDDED: 60.0}  # of one job: no round after the fourth begins later
MAX_OF_PLAIN = 1.02  # CPU of our job over that of plain PySpark
NOISE_FLOOR = 0.01  # of equal runs, below which rounds end
MIN_AHEAD = 4  # jobs with less CPU than Flink SQL
TOPICS = {"campaign_views": "ad_events"}  # the others read transactions


def _filter(rows: Any, F: Any) -> Any:  # noqa: N803
    return rows.where((F.col("type") == "Credit") & (F.col("amount") > 40_000))


def _counts(rows: Any, F: Any) -> Any:  # noqa: N803
    windows = rows.withWatermark("event_time", "1 minute").groupBy(F.window("event_time", "1 day"), "customer_id")
    return windows.agg(F.count("*"), F.sum("amount"))


def _dedup(rows: Any, F: Any) -> Any:  # noqa: N803
    return rows.withWatermark("event_time", "1 minute").dropDuplicatesWithinWatermark(["transaction_id"])


def _pairs(rows: Any, F: Any) -> Any:  # noqa: N803
    large = rows.where("amount > 10000").select("transaction_id", "customer_id", "event_time", "amount", "type")
    debits, credits = (
        large.where(F.col("type") == kind).withWatermark("event_time", "1 minute").alias(kind)
        for kind in ("Debit", "Credit")
    )
    within = "Credit.event_time BETWEEN Debit.event_time - INTERVAL 1 HOUR AND Debit.event_time + INTERVAL 1 HOUR"
    pairs = debits.join(credits, F.expr(f"Debit.customer_id = Credit.customer_id AND {within}"))
    ids = (F.col(f"{kind}.transaction_id").alias(kind) for kind in ("Debit", "Credit"))
    return pairs.select("Debit.customer_id", *ids, F.col("Debit.amount"), F.col("Credit.amount").alias("credited"))


def _views(rows: Any, F: Any) -> Any:  # noqa: N803
    from ledgerops.ledger.sources.ads import campaigns

    views = rows.where("event_type = 'view'").withWatermark("event_time", "1 minute")
    known = views.join(F.broadcast(campaigns(rows.sparkSession)), "ad_id")
    return known.groupBy(F.window("event_time", "10 seconds"), "campaign_id").count()


# Flink has watermarks on milliseconds only
COLUMNS = "transaction_id STRING, account_id STRING, customer_id STRING, event_time TIMESTAMP_LTZ(3), `type` STRING, "
COLUMNS += "operation STRING, amount DECIMAL(18, 2), balance DECIMAL(18, 2)"
EVENTS = "user_id STRING, page_id STRING, ad_id STRING, ad_type STRING, event_type STRING, event_time TIMESTAMP_LTZ(3)"
WINDOW = "window_start TIMESTAMP(3), window_end TIMESTAMP(3)"
# job -> the same in PySpark, columns of Flink's result, and its query
JOBS: Mapping[str, tuple[Callable[[Any, Any], Any], str, str]] = {
    "large_credits": (
        _filter, COLUMNS,
        "SELECT transaction_id, account_id, customer_id, event_time, `type`, operation, amount, balance "
        "FROM transactions WHERE `type` = 'Credit' AND amount > 40000",
    ),
    "daily_counts": (
        _counts, f"{WINDOW}, customer_id STRING, transactions BIGINT, amount DECIMAL(38, 2)",
        "SELECT window_start, window_end, customer_id, COUNT(*), SUM(amount) FROM TABLE(TUMBLE(TABLE transactions, "
        "DESCRIPTOR(event_time), INTERVAL '1' DAY)) GROUP BY window_start, window_end, customer_id",
    ),
    "dedup_transactions": (
        _dedup, COLUMNS,
        "SELECT transaction_id, account_id, customer_id, event_time, `type`, operation, amount, balance FROM "
        "(SELECT *, ROW_NUMBER() OVER (PARTITION BY transaction_id ORDER BY read_at) AS copy FROM transactions) "
        "WHERE copy = 1",
    ),
    "debit_credit_pairs": (
        _pairs, "customer_id STRING, debit_id STRING, credit_id STRING, debit DECIMAL(18, 2), credit DECIMAL(18, 2)",
        "SELECT d.customer_id, d.transaction_id, c.transaction_id, d.amount, c.amount FROM transactions d JOIN "
        "transactions c ON d.customer_id = c.customer_id AND d.`type` = 'Debit' AND c.`type` = 'Credit' AND "
        "d.amount > 10000 AND c.amount > 10000 AND c.event_time BETWEEN d.event_time - INTERVAL '1' HOUR "
        "AND d.event_time + INTERVAL '1' HOUR",
    ),
    "campaign_views": (
        _views, f"{WINDOW}, campaign_id STRING, seen BIGINT",
        "SELECT window_start, window_end, campaign_id, COUNT(*) FROM TABLE(TUMBLE(TABLE ad_views, "
        "DESCRIPTOR(event_time), INTERVAL '10' SECOND)) GROUP BY window_start, window_end, campaign_id",
    ),
}  # fmt: skip
VIEWS = """CREATE VIEW ad_views AS SELECT event_time,
    'CM' || LPAD(CAST((CAST(SUBSTRING(ad_id, 3) AS INT) - 1) / 10 + 1 AS STRING), 3, '0') AS campaign_id
    FROM ad_events WHERE event_type = 'view'"""


def engine(say: Callable[[str], None], rounds: int = ROUNDS) -> Iterator[Line]:
    """Yields a line for each job and source: CPU seconds per million rows, each way. Downloads Flink the first time."""
    from ledgerops.servers.jars import connector_jars

    others = tuple(job for job in JOBS if job != PAIRS)
    with tempfile.TemporaryDirectory() as name:
        spark = session(Path(name), {"spark.jars": ",".join(map(str, connector_jars()))})
        try:
            against: list[str] = []
            for jobs, rows in ((others, ROWS[KAFKA]), ((PAIRS,), PAIRS_ROWS)):
                with _from_kafka(spark, rows, say) as ways:
                    for job in jobs:
                        seen = _measured(ways, job, KAFKA, rounds, say)
                        yield _line(job, KAFKA, seen)
                        if FLINK in seen:
                            against.append(_against_flink(seen))
            ways = Ways(spark, Path(name), None, None, ROWS[EMBEDDED])
            for job in JOBS:
                yield _line(job, EMBEDDED, _measured(ways, job, EMBEDDED, rounds, say))
            if against:
                yield _ahead(against)
        finally:
            spark.stop()


def _measured(ways: "Ways", job: str, source: str, rounds: int, say: Callable[[str], None]) -> dict[str, list[float]]:
    """CPU seconds per million rows by kind, of one job, after a round that is not counted."""
    kinds = ways.of(job, source)

    def run(kind: str, number: int) -> float:
        used = kinds[kind]() * 1e6 / ways.rows
        say(f"{job}: round {number}, {kind}: {used:.2f} CPU s per million rows")
        return used

    def counted(seen: Mapping[str, list[float]]) -> dict[str, list[float]]:
        return {kind: used[1:] for kind, used in seen.items()}

    return counted(take_turns(run, [*kinds], rounds + 1, lambda seen: _is_decided(counted(seen)), MAX_SECONDS[source]))


def _is_decided(seen: Mapping[str, list[float]]) -> bool:
    """Whether equal runs differ by less than NOISE_FLOOR, or by less than what is between our job and its budget."""
    found = _compared(seen)
    return found.uncertainty < max(NOISE_FLOOR, abs(found.ratio - MAX_OF_PLAIN))


def _compared(seen: Mapping[str, list[float]], other: str = PLAIN) -> Compared:
    """Both runs of our job against the kind `other`, with the noise of our job against itself."""
    ours = [(one + again) / 2 for one, again in zip(seen[OURS], seen[AGAIN], strict=True)]
    ratio = compare(seen[other], seen[other], ours).ratio
    return replace(compare(seen[OURS], seen[AGAIN], seen[OURS]), ratio=ratio)


def _line(job: str, source: str, seen: Mapping[str, list[float]]) -> Line:
    found = _compared(seen)
    shares = [f"{statistics.median(values):.2f} {kind}" for kind, values in seen.items() if kind != AGAIN]
    figure = f"{found.ratio:.3f} of PySpark's CPU: {', '.join(shares)}"
    return Line(f"`{job}`, from {source}", figure, found.floor, f"<= {MAX_OF_PLAIN}", found.at_most(MAX_OF_PLAIN))


def _against_flink(seen: Mapping[str, list[float]]) -> str:
    """Whether our job is ahead of Flink SQL: YES, NO, or UNKNOWN where the difference is within the noise."""
    found = _compared(seen, FLINK)
    if abs(found.ratio - 1) <= found.uncertainty:
        return UNKNOWN
    return YES if found.ratio < 1 else NO


def _ahead(against: Sequence[str]) -> Line:
    ahead, tied = against.count(YES), against.count(UNKNOWN)
    holds = YES if ahead >= MIN_AHEAD else UNKNOWN if ahead + tied >= MIN_AHEAD else NO
    figure = f"{ahead} of {len(against)}" + (f", {tied} within noise" if tied else "")
    return Line("jobs from Kafka with less CPU than Flink SQL", figure, "", f">= {MIN_AHEAD}", holds)


class Ways:
    """The ways to run a job: each reads `rows` rows once and returns the CPU seconds that this took."""

    def __init__(self, spark: Any, folder: Path, kafka: Any, flink: Flink | None, rows: int) -> None:
        self.spark, self.folder, self.kafka, self.flink, self.rows = spark, folder, kafka, flink, rows

    def of(self, job: str, source: str) -> dict[str, Callable[[], float]]:
        """By kind, for one job on one source."""
        from pyspark.sql import functions as F

        from ledgerops.ledger.jobs import find_job
        from ledgerops.ledger.run.start import ROCKSDB, provider_of, store_conf

        plain, _, query = JOBS[job]
        ours, topic = find_job(job), TOPICS.get(job, "transactions")
        store = store_conf(provider_of(ours, {}) or ROCKSDB)

        def simple(table: Any) -> Any:
            return plain(table, F)

        checked, decoded = (self._embedded, self._embedded) if source == EMBEDDED else (self._checked, self._decoded)
        kinds = {
            OURS: lambda: self._in_store(store, ours.transform, checked(topic)),
            PLAIN: lambda: self._in_store(store, simple, decoded(topic)),
            AGAIN: lambda: self._in_store(store, ours.transform, checked(topic)),
        }
        flink = self.flink
        if flink is not None:
            kinds[FLINK] = lambda: flink.insert(job, query, "hashmap" if ours.fits_heap else "rocksdb")
        return kinds

    def _in_store(self, store: Mapping[str, str], transform: Callable[..., Any], table: Any) -> float:
        from ledgerops.checkpoint.state_rows import temporary_conf

        with temporary_conf(self.spark, store):
            return _run(transform(table), self.folder)

    def _embedded(self, topic: str) -> Any:
        return embedded(self.spark, (topic,))(self.folder, self.rows, self.rows // BATCHES)[topic]

    def _checked(self, topic: str) -> Any:
        """The rows of a topic as our jobs read them: a record that is no row is refused and counted."""
        from ledgerops.ledger.sources.kafka import Topics, open_table

        return open_table(self.spark, Topics(self.kafka.client), topic, self.rows // BATCHES, "rejected")

    def _decoded(self, topic: str) -> Any:
        """The rows of a topic by a typed from_json."""
        from pyspark.sql import functions as F

        from ledgerops.ledger.plan.schemas import TABLES

        records = self.spark.readStream.format("kafka").option("kafka.bootstrap.servers", self.kafka.servers)
        records = records.option("subscribe", topic).option("startingOffsets", "earliest")
        values = (
            records.option("maxOffsetsPerTrigger", self.rows // BATCHES).load().select(F.col("value").cast("string"))
        )
        return values.select(F.from_json("value", TABLES[topic]).alias("row")).select("row.*")


@contextmanager
def _from_kafka(spark: Any, rows: int, say: Callable[[str], None]) -> Iterator[Ways]:
    """The ways to run a job on a broker whose topics have so many rows."""
    from ledgerops.ledger.sources.topics import create
    from ledgerops.servers.kafka import Kafka

    with tempfile.TemporaryDirectory() as name, Kafka(Path(name) / "kafka") as kafka:
        create(kafka.client)
        for topic in ("transactions", "ad_events"):
            send_process(kafka.servers, topic, topic, rows)
        flink = _flink(Path(name), kafka.servers, say)
        try:
            yield Ways(spark, Path(name), kafka, flink, rows)
        finally:
            if flink is not None:
                flink.close()


def _run(result: Any, folder: Path) -> float:
    checkpoint = folder / "checkpoint"
    meter = Meter()
    start_noop(result, checkpoint, availableNow=True).awaitTermination()
    used = meter.used().total
    shutil.rmtree(checkpoint)
    return used


def _flink(folder: Path, servers: str, say: Callable[[str], None]) -> Flink | None:
    """Flink with its tables; None where it cannot be downloaded."""
    try:
        jars = fetch()
    except (UserError, subprocess.CalledProcessError) as error:
        say(f"without Flink: {error}")
        return None
    flink = Flink(folder, jars)
    _create_tables(flink, servers)
    return flink


def _create_tables(flink: Flink, servers: str) -> None:
    kafka = {
        "connector": "kafka",
        "properties.bootstrap.servers": servers,
        "scan.startup.mode": "earliest-offset",
        "scan.bounded.mode": "latest-offset",
        "format": "json",
        "json.timestamp-format.standard": "ISO-8601",
    }
    for topic, columns in (("transactions", COLUMNS), ("ad_events", EVENTS)):
        options = ", ".join(f"'{key}' = '{value}'" for key, value in {**kafka, "topic": topic}.items())
        extra = "read_at AS PROCTIME(), WATERMARK FOR event_time AS event_time - INTERVAL '1' MINUTE"
        flink.run(f"CREATE TABLE {topic} ({columns}, {extra}) WITH ({options})")
    flink.run(VIEWS)
    flink.run("SET 'table.exec.state.ttl' = '60 s'")  # the lateness that the other two forget after
    for job, (_, columns, _) in JOBS.items():
        flink.run(f"CREATE TABLE {job} ({columns}) WITH ('connector' = 'blackhole')")
