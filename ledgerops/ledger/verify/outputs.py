"""What a job wrote, batch by batch: committed Parquet files, Kafka topics or Postgres tables."""

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import orjson
import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
from confluent_kafka import Consumer, TopicPartition

from ledgerops.common.kafka import KafkaClient
from ledgerops.common.kafka_offsets import read_heads
from ledgerops.errors import UserError
from ledgerops.ledger.postgres import describe_url, error_line, quoted
from ledgerops.ledger.sinks.committed import committed_files

BATCH_ROWS = 65_536
ANSWER_SECONDS = 10.0
QUIET_SECONDS = 30.0  # in which a topic must give its next record
_INSTANTS = ("_time", "_start", "_end", "_at", "timestamp")
_MICROS = pa.timestamp("us", tz="UTC")


class ParquetOutput:
    """The files that a job has committed to its folder."""

    at_least_once = False
    deleted = 0

    def __init__(self, folder: Path) -> None:
        """Raises UserError when a file cannot be read."""
        self._files = committed_files(folder)
        self.rows = 0
        names: dict[str, None] = {}
        for file in self._files:
            try:
                with pq.ParquetFile(file) as opened:
                    self.rows += opened.metadata.num_rows
                    names |= dict.fromkeys(opened.schema_arrow.names)
            except (OSError, pa.ArrowInvalid) as error:
                raise UserError(f"cannot read {file}: {str(error).splitlines()[0].lower()}") from None
        self.columns: Sequence[str] = list(names)

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """The columns of `columns` that each file has, in that order, in batches of at most BATCH_ROWS rows."""
        for file in self._files:
            with pq.ParquetFile(file) as opened:
                wanted = [name for name in columns if name in opened.schema_arrow.names]
                for batch in opened.iter_batches(BATCH_ROWS, columns=wanted):
                    yield batch.select(wanted)


class KafkaOutput:
    """The records of some topics up to where they ended when it was opened; values are JSON objects."""

    at_least_once = True

    def __init__(self, client: KafkaClient, partitions: Mapping[str, int]) -> None:
        """`partitions`: how many each topic has. Raises UserError when Kafka does not answer, or holds other things."""
        self._client, self._topics = client, ", ".join(partitions)
        heads, self._begins = read_heads(client, partitions), read_heads(client, partitions, "earliest")
        self._ends = {place: end for place, end in heads.items() if end > self._begins[place]}
        self.rows = sum(end - self._begins[place] for place, end in self._ends.items())
        self.deleted = sum(self._begins.values())
        first = next(self._values(), None)
        self.columns: Sequence[str] = list(first[0]) if first else []

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """All of `columns`, in batches of at most BATCH_ROWS rows; a value that a record lacks is null.

        Raises UserError if the broker does not answer or the values of one column have different types.
        """
        for values in self._values():
            arrays = {name: self._column(name, [value.get(name) for value in values]) for name in columns}
            yield pa.RecordBatch.from_arrays(list(arrays.values()), names=list(arrays))

    def _column(self, name: str, values: list[Any]) -> pa.Array:
        try:
            array = pa.array(values)
            # JSON has no instants: a text under such a name is one
            return array.cast(_MICROS) if pa.types.is_string(array.type) and name.endswith(_INSTANTS) else array
        except pa.ArrowException:
            raise UserError(f"cannot read topic {self._topics}: the values of {name} have different types") from None

    def _values(self) -> Iterator[list[dict[str, Any]]]:
        settings = {"group.id": "ledgerops-verify", "enable.auto.commit": False, "log_level": 0}
        # what is deleted after the beginnings were asked for is passed over, and not everything
        settings |= {"isolation.level": "read_committed", "enable.partition.eof": True, "auto.offset.reset": "earliest"}
        consumer = Consumer(self._client.librdkafka(**settings))
        left = set(self._ends)
        consumer.assign([TopicPartition(topic, int(part), self._begins[topic, part]) for topic, part in left])
        limit = time.monotonic() + QUIET_SECONDS
        try:
            while left:
                values = self._objects(consumer.consume(BATCH_ROWS, timeout=0.5), left)
                if values:
                    limit = time.monotonic() + QUIET_SECONDS
                    yield values
                elif time.monotonic() > limit:
                    raise UserError(f"Kafka at {self._client.servers} has not answered for {QUIET_SECONDS:.0f} s")
        finally:
            consumer.close()

    def _objects(self, messages: Iterable[Any], left: set[tuple[str, str]]) -> list[dict[str, Any]]:
        """The values of messages before the ends; partitions whose end was reached are taken from `left`."""
        values = []
        for message in messages:
            place = (message.topic(), str(message.partition()))
            if message.error() is not None:
                if message.error().name() != "_PARTITION_EOF":
                    raise UserError(f"cannot read topic {message.topic()}: {message.error().str()}")
                left.discard(place)
                continue
            end = self._ends[place]
            if message.offset() >= end - 1:
                left.discard(place)
            if message.offset() < end and message.value() is not None:
                values.append(_object(message))
        return values


def _object(message: Any) -> dict[str, Any]:
    try:
        found = orjson.loads(message.value())
    except orjson.JSONDecodeError:
        found = None
    if not isinstance(found, dict):
        place = f"offset {message.offset()} of partition {message.partition()}"
        raise UserError(f"cannot read topic {message.topic()}: the record at {place} is not a JSON object")
    return found


class PostgresOutput:
    """Some tables of one form; `url` is never shown."""

    at_least_once = False
    deleted = 0

    def __init__(self, url: str, tables: Sequence[str]) -> None:
        self._url, self._tables = url, tables
        self.rows, self.columns = 0, []
        for table in tables:
            with _reading(url, table) as connection:
                cursor = connection.execute(f"SELECT * FROM {quoted(table)} LIMIT 0")
                self.columns = [column.name for column in cursor.description or ()]
                self.rows += connection.execute(f"SELECT count(*) FROM {quoted(table)}").fetchone()[0]

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """The columns of `columns` that the tables have, in that order, in batches of at most BATCH_ROWS rows."""
        wanted = [name for name in columns if name in self.columns]
        for table in self._tables:
            with _reading(self._url, table) as connection, connection.cursor(name="ledgerops_verify") as cursor:
                cursor.execute(f"SELECT {quoted(*wanted)} FROM {quoted(table)}")
                while rows := cursor.fetchmany(BATCH_ROWS):
                    arrays = [pa.array(values) for values in zip(*rows, strict=True)]
                    yield pa.RecordBatch.from_arrays(arrays, names=wanted)


Output = ParquetOutput | KafkaOutput | PostgresOutput  # each may be read several times


def postgres(url: str) -> Any:
    """A connection in UTC. Raises UserError without the URL's password."""
    describe_url(url)  # the driver would quote an invalid URL in its error, with the password
    try:
        return psycopg.connect(url, connect_timeout=int(ANSWER_SECONDS), options="-c TimeZone=UTC")
    except psycopg.Error as error:
        raise UserError(f"cannot reach the Postgres of --postgres: {error_line(error)}") from None


@contextmanager
def _reading(url: str, table: str) -> Iterator[Any]:
    """A connection for one table. Raises UserError when it may not be read, or the server goes away meanwhile."""
    try:
        with postgres(url) as connection:
            yield connection
    except psycopg.Error as error:
        raise UserError(f"cannot read table {table} of --postgres: {error_line(error)}") from None
