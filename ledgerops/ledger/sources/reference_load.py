"""Loads the reference data, customers and accounts, into Kafka's compacted topics and into tables of Postgres.

Loading again leaves the same: records are keyed, rows are upserted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import psycopg
import pyarrow as pa
from confluent_kafka import KafkaException, Producer

from ledgerops.common.kafka import KafkaClient
from ledgerops.errors import UserError
from ledgerops.ledger.plan.encode import json_keys, json_values
from ledgerops.ledger.plan.generate import account_ids, customer_ids
from ledgerops.ledger.plan.plan import LoadPlan
from ledgerops.ledger.postgres import describe_url, error_line
from ledgerops.ledger.sources.customers import generate_accounts, generate_customers, read_accounts, read_customers

Advance = Callable[[int], None]
DELIVERY_SECONDS = 60.0  # until the last record must be taken; 10,000 take one
CHUNK_RECORDS = 500
SQL = {pa.string(): "text", pa.int32(): "integer", pa.date32(): "date", pa.timestamp("us", tz="UTC"): "timestamptz"}


def read_tables(folder: Path, work_dir: Path) -> dict[str, pa.Table]:
    """The good rows of customers.csv and accounts.csv; the bad ones go to `work_dir`/rejects.jsonl."""
    return {"customers": read_customers(folder, work_dir), "accounts": read_accounts(folder, work_dir)}


def generate_tables(plan: LoadPlan) -> dict[str, pa.Table]:
    """Invented customers and accounts, one for each that a transaction of the plan may name."""
    return {
        "customers": generate_customers(customer_ids(plan.all_keys), plan.seed),
        "accounts": generate_accounts(account_ids(plan.all_keys), plan.seed),
    }


def to_kafka(
    client: KafkaClient,
    prefix: str,
    tables: Mapping[str, pa.Table],
    advance: Advance,
    seconds: float = DELIVERY_SECONDS,
) -> None:
    """Each row as JSON under its key, to the topic `prefix` and the table's name. UserError for what was not taken.

    A record is given up after half of `seconds`, and with it the load.
    """
    failures: list[str] = []

    def done(error: Any, message: Any) -> None:
        if error is None:
            advance(1)
        else:
            failures.append(f"topic {message.topic()}: {error.str().lower()}")

    limits = {"message.timeout.ms": int(seconds * 1000 / 2), "enable.idempotence": True, "log_level": 0}
    try:
        producer = Producer(client.librdkafka(**limits))
        for topic, key, value in _records(prefix, tables):
            while True:
                try:
                    producer.produce(topic, value, key, on_delivery=done)
                    break
                except BufferError:  # the queue is full, until the broker has taken some or they are given up
                    producer.poll(0.1)
            producer.poll(0)
            if failures:
                break
        left = producer.flush(seconds)
    except KafkaException as error:
        raise UserError(f"cannot load the reference data into {client.servers}: {error}") from None
    if failures:
        raise UserError(f"{client.servers} rejected {len(failures)} records; the first: {failures[0]}")
    if left:
        raise UserError(
            f"{client.servers} did not accept {left} records within {seconds:.0f} s; is the broker healthy?"
        )


def _records(prefix: str, tables: Mapping[str, pa.Table]) -> Iterator[tuple[str, bytes, bytes]]:
    for name, table in tables.items():
        for batch in table.to_batches(CHUNK_RECORDS):
            for key, value in zip(json_keys(batch.column(0)), json_values(batch), strict=True):
                yield prefix + name, key.as_py(), value.as_py()


def to_postgres(url: str, tables: Mapping[str, pa.Table], advance: Advance) -> None:
    """Upserts each table, made if it is missing, in one transaction. UserError, which never shows a password."""
    where = describe_url(url)
    try:
        with psycopg.connect(url, connect_timeout=5) as connection:
            for name, table in tables.items():
                _upsert(connection, name, table, advance)
    except psycopg.Error as error:
        raise UserError(f"cannot load the reference data into {where}: {error_line(error)}") from None


def _upsert(connection: psycopg.Connection[Any], name: str, table: pa.Table, advance: Advance) -> None:
    columns = {field.name: SQL[field.type] for field in table.schema}  # the first is the key
    key, *others = columns
    defined = ", ".join(f"{column} {kind}" for column, kind in columns.items())
    names = ", ".join(columns)
    connection.execute(f"CREATE TABLE IF NOT EXISTS {name} ({defined}, PRIMARY KEY ({key}))")
    connection.execute(f"CREATE TEMPORARY TABLE new_{name} ({defined}) ON COMMIT DROP")
    with connection.cursor().copy(f"COPY new_{name} ({names}) FROM STDIN") as copy:
        for batch in table.to_batches(CHUNK_RECORDS):
            for row in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                copy.write_row(row)
            advance(batch.num_rows)
    news = ", ".join(f"{column} = excluded.{column}" for column in others)
    connection.execute(
        f"INSERT INTO {name} ({names}) SELECT {names} FROM new_{name} ON CONFLICT ({key}) DO UPDATE SET {news}"
    )
