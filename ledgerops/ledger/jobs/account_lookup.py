"""Account lookup: each transaction with its account's columns, asked for in a database as it passes.

Reads `transactions`, and the table `accounts` of a database (`accounts` in the job's services: a PostgreSQL or SQLite
URL); writes every transaction once, with district_id, frequency and opened_on of its account, and `known`. An account
that the table does not hold gives null columns and `known` false. The row is the one of the time of processing, not of
the event time, and at most TTL_SECONDS old: each worker remembers answers for so long, "there is none" too.
State: none; the cache of a worker is lost with it, which costs one question. Watermark: none, no row is too late.
Restart: goes on with the first batch that was not committed; a batch that is repeated asks again, so an account that
changed meanwhile is seen as it is now. A database that is away for less than lookup.MAX_OUTAGE_SECONDS holds the batch
up; longer, and the query fails with the database's name, having lost nothing.
Upgrade: TTL_SECONDS and the columns of the table may change at any restart; rows already written stay.
"""

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame

from ledgerops.ledger.jobs.databases import Table
from ledgerops.ledger.jobs.job import Job
from ledgerops.ledger.jobs.lookup import TTL_SECONDS, open_lookup
from ledgerops.ledger.plan.schemas import ACCOUNTS, TRANSACTIONS

COLUMNS = {"district_id": pa.int32(), "frequency": pa.string(), "opened_on": pa.date32()}
TABLE = Table("accounts", "account_id", tuple(COLUMNS), dates=("opened_on",))
OUTPUT = f"{TRANSACTIONS}, {ACCOUNTS.partition(', ')[2]}, known BOOLEAN"


def transform(transactions: DataFrame, accounts: str, ttl: float = TTL_SECONDS) -> DataFrame:
    """Transactions in; their columns, those of their account and `known` out. `accounts`: URL of the database."""

    def look_up(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return attach(batches, accounts, ttl)

    return transactions.mapInArrow(look_up, OUTPUT)


def attach(batches: Iterator[pa.RecordBatch], accounts: str, ttl: float = TTL_SECONDS) -> Iterator[pa.RecordBatch]:
    """Each batch with the columns of OUTPUT: one question for the accounts of a batch that are not remembered."""
    lookup = open_lookup(accounts, TABLE, ttl)
    for batch in batches:
        ids = batch.column("account_id")
        distinct = pc.unique(ids).drop_null()
        rows = lookup.rows(distinct.to_pylist())
        held = [(key, *row) for key, row in rows.items() if row is not None]
        keys, *values = zip(*held, strict=True) if held else [() for _ in range(1 + len(COLUMNS))]
        places = pc.index_in(ids, pa.array(keys, ids.type), skip_nulls=True)
        columns = [pa.array(value, kind).take(places) for value, kind in zip(values, COLUMNS.values(), strict=True)]
        yield pa.RecordBatch.from_arrays(
            [*batch.columns, *columns, places.is_valid()], names=[*batch.schema.names, *COLUMNS, "known"]
        )


JOB = Job(
    name="account_lookup",
    group="joins",
    summary="Each transaction with its account, looked up in a database.",
    transform=transform,
    stateful=False,
    services=("accounts",),
)
