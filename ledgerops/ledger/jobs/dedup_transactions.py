"""Deduplicated transactions: the first of every transaction_id, however often a producer sent it.

Reads `transactions`, writes its rows unchanged. State: one row for each transaction_id, for as long as the lateness
after its event time; in the heap, 200 to 400 bytes each, so that with more than a million of them RocksDB is the better
store (docs/guides/rocksdb.md). Watermark: the largest event time seen, less the lateness. A row behind the watermark is
dropped even if it is the first of its id, since Spark can no longer know; a copy with an event time later by more than
the lateness counts as a new transaction.
Restart: the ids come back with the checkpoint, so a copy that arrives after the restart is still dropped.
Upgrade: the lateness may change at a restart and holds for ids seen from then on; the key column may not. A checkpoint
keeps the state store that it began with.
"""

from pyspark.sql import DataFrame

from ledgerops.ledger.jobs.job import LATENESS, Job


def transform(transactions: DataFrame, lateness: str = LATENESS) -> DataFrame:
    """Transactions in; one row for each transaction_id out, the one that arrived first."""
    return transactions.withWatermark("event_time", lateness).dropDuplicatesWithinWatermark(["transaction_id"])


JOB = Job(
    name="dedup_transactions",
    group="sql",
    summary="Every transaction once, however often it was sent.",
    transform=transform,
    stateful=True,
    key="transaction_id",
    lateness=LATENESS,
    fits_heap=True,
)
