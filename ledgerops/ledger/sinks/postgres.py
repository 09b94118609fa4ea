"""Postgres tables, written once by the number of the batch."""

import contextlib
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import psycopg
from psycopg import Connection
from pyspark.sql import DataFrame
from pyspark.sql.streaming import DataStreamWriter

from ledgerops.checkpoint.batch_log import BatchLog, parse_query_id
from ledgerops.errors import UserError
from ledgerops.ledger.jobs.job import Job
from ledgerops.ledger.postgres import NO_URL, describe_url, error_line
from ledgerops.ledger.sinks.batches import by_batch, pass_over
from ledgerops.ledger.sinks.staging import Unstaged, check_driver, discard, stage
from ledgerops.ledger.sinks.tables import Target, column_types, create, repeated_rows, routes_of

BATCHES = "ledgerops_batches"
CONNECT_SECONDS = 10
PAUSES_SECONDS = (0.5, 1.0, 2.0, 4.0, 8.0)  # between attempts; the last for all further ones
MAX_ATTEMPTS = 3  # while the server answers: what fails then is not its restart and does not go away

CREATE_BATCHES = f"""
CREATE TABLE IF NOT EXISTS {BATCHES} (
    job text, query text, batch bigint NOT NULL, written_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (job, query)
)
"""
RECORD = f"""
INSERT INTO {BATCHES} (job, query, batch) VALUES (%s, %s, %s)
ON CONFLICT (job, query) DO UPDATE SET batch = EXCLUDED.batch, written_at = now()
WHERE {BATCHES}.batch < EXCLUDED.batch RETURNING batch
"""


@dataclass(frozen=True)
class PostgresSink:
    """Each row exactly once, into a table of its route's or else the job's name.

    Spark writes a batch to a staging table, from all its tasks; then one transaction moves the rows and records the
    batch in `ledgerops_batches` (the newest for each job and query id). A batch that is recorded is skipped, so a
    repeated one changes nothing; a checkpoint with fresh state has another query id and is written. Jobs that upsert
    replace the row of a key; of several rows of one key in one batch the one with the latest event time wins, then the
    one with the greatest values of the other columns. Tables are made when they are missing; NUL characters, which
    Postgres cannot hold, become U+FFFD.

    While the server is away a batch is tried again for `retry_seconds`; then the query fails with nothing of the batch
    written. The password of `url` (postgresql://user:password@host:port/database) is in no message.
    """

    url: str = field(repr=False)
    retry_seconds: float = 120.0
    remembers: ClassVar[bool] = True

    def __post_init__(self) -> None:
        describe_url(self.url)
        known = psycopg.conninfo.conninfo_to_dict(self.url)
        if not known.get("host") or not str(known.get("port", "5432")).isdecimal():  # Spark's driver needs one of each
            raise UserError(NO_URL)

    def __str__(self) -> str:
        return describe_url(self.url)

    def last_batch(self, job: Job, checkpoint: Path) -> int | None:
        """Number of the newest recorded batch of this query; None if there is none.

        Raises UserError if the server cannot be reached.
        """
        with self._reached() as connection:
            create(connection, CREATE_BATCHES)
            query = BatchLog(checkpoint).query_id
            return None if query is None else _recorded(connection, job, query)

    def write(self, job: Job, rows: DataFrame, checkpoint: Path) -> DataStreamWriter:
        """Prepares the tables and returns the writer of `rows`.

        Raises UserError if the JDBC driver is missing or the server cannot be reached.
        """
        check_driver(rows.sparkSession)
        if job.on_batch is None:  # else the columns are known with the first batch
            with self._reached() as connection:
                for name in job.routes if job.route else (job.name,):
                    _target(job, rows, name).prepare(connection)

        def write(batch_rows: DataFrame, batch: int) -> None:
            query = parse_query_id((checkpoint / "metadata").read_text("utf-8"))
            self._patiently(lambda: self.write_batch(job, batch_rows, batch, query), f"batch {batch} of {job.name}")

        return by_batch(job, rows, checkpoint, write)

    def write_batch(self, job: Job, rows: DataFrame, batch: int, query: str) -> None:
        """Writes one batch, once; the next after it may be written when this has returned."""
        with self._connect() as connection:
            written = _recorded(connection, job, query)
        if written is not None and written >= batch:
            pass_over(rows)
            return
        staging = stage(self._connect, job, rows, query)
        try:
            with self._connect() as connection:
                self._move(connection, job, rows, batch, query, staging)
        finally:
            discard(self._connect, staging)

    def _move(
        self, connection: Connection[Any], job: Job, rows: DataFrame, batch: int, query: str, staging: str
    ) -> None:
        """All of it in the connection's one transaction."""
        if connection.execute(RECORD, [job.name, query, batch]).fetchone() is None:
            return
        if repeated_rows(connection, staging):
            raise Unstaged("a task wrote its rows twice")
        names = [job.name] if job.route is None else routes_of(connection, staging, job.route)
        for name in names:
            target = _target(job, rows, name)
            target.prepare(connection)
            connection.execute(target.fill(staging, job.route, job.event_time), [] if job.route is None else [name])

    def _patiently(self, attempt: Callable[[], None], what: str) -> None:
        """Tries until it works, or a failure is not one that waiting mends. Raises UserError."""
        since, tries, answering = time.monotonic(), 0, 0
        while True:
            try:
                return attempt()
            except (psycopg.OperationalError, psycopg.InterfaceError, Unstaged) as error:
                reason = error_line(error)
                answering += self._answers()
            except psycopg.Error as error:
                raise UserError(f"{self} rejects {what}: {error_line(error)}") from None
            if answering == MAX_ATTEMPTS:
                raise UserError(f"{self} rejects {what}: {reason}")
            if time.monotonic() - since > self.retry_seconds:
                raise UserError(
                    f"{self} did not accept {what} within {self.retry_seconds:.0f} s: {reason}; none of it is written; "
                    "start again when the server is back"
                )
            time.sleep(PAUSES_SECONDS[min(tries, len(PAUSES_SECONDS) - 1)])
            tries += 1

    def _answers(self) -> bool:
        try:
            with self._connect():
                return True
        except psycopg.Error:
            return False

    def _connect(self) -> Connection[Any]:
        """A connection that commits at the end of its `with` block, or rolls back."""
        return psycopg.connect(self.url, connect_timeout=CONNECT_SECONDS, application_name="ledgerops")

    @contextlib.contextmanager
    def _reached(self) -> Iterator[Connection[Any]]:
        try:
            with self._connect() as connection:
                yield connection
        except psycopg.OperationalError as error:
            raise UserError(f"cannot reach {self}: {error_line(error)}") from None
        except psycopg.Error as error:
            raise UserError(f"cannot write to {self}: {error_line(error)}") from None


def _target(job: Job, rows: DataFrame, name: str) -> Target:
    columns = {name: kind for name, kind in column_types(rows.schema).items() if name != job.route}
    return Target(name, columns, job.upsert)


def _recorded(connection: Connection[Any], job: Job, query: str) -> int | None:
    found = connection.execute(f"SELECT batch FROM {BATCHES} WHERE job = %s AND query = %s", [job.name, query])
    row = found.fetchone()
    return None if row is None else int(row[0])
