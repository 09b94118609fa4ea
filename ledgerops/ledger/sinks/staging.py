"""Staging tables: a batch in Postgres as Spark's tasks wrote it, before it counts."""

import re
import uuid
from collections.abc import Callable
from typing import Any
from urllib.parse import quote, urlencode

import psycopg
from psycopg import Connection
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from ledgerops.errors import UserError
from ledgerops.ledger.jobs.job import Job
from ledgerops.ledger.sinks.tables import JSON, ROW, column_types, create_staging, drop, tables_like

PREFIX = "ledgerops_staging"
DRIVER = "org.postgresql.Driver"
ROWS_A_STATEMENT = 5000  # the driver makes of them few statements with many values each; Spark's default is 1000
# of libpq's parameters those that the JDBC driver knows by the same name and in the same form
SHARED = ("sslmode", "sslrootcert", "options")

Connect = Callable[[], "Connection[Any]"]


class Unstaged(Exception):
    """Spark could not write a batch to its staging table, or wrote it wrongly."""


def check_driver(session: SparkSession) -> None:
    """Raises UserError if Spark has no Postgres driver."""
    try:
        session._jvm.org.apache.spark.util.Utils.classForName(DRIVER, True, False)
    except Py4JJavaError:
        raise UserError(
            f"Spark has no {DRIVER}; run `ledgerops jars` and give its connector jars as spark.jars"
        ) from None


def stage(connect: Connect, job: Job, rows: DataFrame, query: str) -> str:
    """Writes the rows of a batch to a table of its own; returns its name. Raises psycopg.Error and Unstaged.

    The name holds the id of the query: what a driver that was killed left behind goes with the next batch.
    """
    columns = column_types(rows.schema)
    mine = f"{PREFIX}_{query.replace('-', '')}_"
    name = f"{mine}{uuid.uuid4().hex[:8]}"
    with connect() as connection:
        for left in tables_like(connection, mine):
            connection.execute(drop(left))
        connection.execute(create_staging(name, columns))
        options = _jdbc(connection)
    try:
        _as_staged(job, rows, columns).write.format("jdbc").mode("append").options(dbtable=name, **options).save()
    except (Py4JJavaError, PySparkException) as error:
        discard(connect, name)
        match = re.search(r"(?:org\.postgresql\.[\w.]*|java\.sql\.\w+): ([^\n]*)", str(error))
        if match is None:  # nothing to do with the database
            raise
        raise Unstaged(match.group(1)) from None
    return name


def discard(connect: Connect, name: str) -> None:
    """Drops a staging table, if the server is there; if not, the next batch does."""
    try:
        with connect() as connection:
            connection.execute(drop(name))
    except psycopg.Error:
        pass


def _as_staged(job: Job, rows: DataFrame, columns: dict[str, str]) -> DataFrame:
    def column(name: str, kind: str) -> Any:
        if name == job.route:
            return F.coalesce(F.col(name), F.lit(job.name)).alias(name)
        if kind == JSON:
            return F.to_json(name).alias(name)
        return F.translate(name, "\0", "\ufffd").alias(name) if kind == "text" else F.col(name)

    # the number is the same if a task runs again over the same rows, so that what was written twice is seen
    number = F.monotonically_increasing_id().alias(ROW)
    return rows.select(number, *(column(name, kind) for name, kind in columns.items()))


def _jdbc(connection: Connection[Any]) -> dict[str, str]:
    """How Spark reaches the database that this connection has reached."""
    known, parameters = connection.info, connection.info.get_parameters()
    host = f"[{known.host}]" if ":" in known.host else known.host
    shared = {name: parameters[name] for name in SHARED if name in parameters}
    query = urlencode({"reWriteBatchedInserts": "true", "ApplicationName": "ledgerops", **shared}, quote_via=quote)
    options = {
        "url": f"jdbc:postgresql://{host}:{known.port}/{quote(known.dbname, safe='')}?{query}",
        "driver": DRIVER,
        "user": known.user,
        "batchsize": str(ROWS_A_STATEMENT),
    }
    return options | ({"password": known.password} if known.password else {})
