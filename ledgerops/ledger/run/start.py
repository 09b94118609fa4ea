"""Starts a job as a query.

A sink writes each row exactly once if it knows which batches it has: one that is repeated after a crash is skipped.
That holds only while output and checkpoint belong together, which is checked before anything starts.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql.streaming import StreamingQuery

from ledgerops.checkpoint.batch_log import BatchLog
from ledgerops.checkpoint.state_rows import temporary_conf
from ledgerops.common.files import write_json
from ledgerops.errors import UserError
from ledgerops.input_files import read_text
from ledgerops.ledger.jobs.job import Job
from ledgerops.ledger.sinks import Sink
from ledgerops.ledger.sources.workers import make_importable

# For the session and not for single queries: Spark reads these from the session that starts the query, and a listener
# receives events only of the queries of its own session.
PROVIDER = "spark.sql.streaming.stateStore.providerClass"
IN_MEMORY = "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider"  # Spark's default
ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
JOIN_VERSION = "spark.sql.streaming.join.stateFormatVersion"
SESSION_CONF: dict[str, str] = {
    # transformWithState works with this provider only; for the others it bounds the memory, where state is not short
    PROVIDER: ROCKSDB,
    # a join's state in one store a partition instead of four, each of which is opened and committed in every batch
    JOIN_VERSION: "3",
    # batches upload what changed and not a snapshot of the whole store
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    # instants, for every reader; Spark's default type has no time zone elsewhere
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
}


def start(
    job: Job,
    inputs: Mapping[str, DataFrame],
    *,
    sink: Sink,
    checkpoint: Path,
    trigger_seconds: float | None = None,
    available_now: bool = False,
    fingerprint: str = "",
    lateness: str | None = None,
    services: Mapping[str, str] | None = None,
    provider: str | None = None,
) -> StreamingQuery:
    """The running query of `job`, named after it, fed by `inputs` (by name, at least those that the job reads).

    `available_now` reads what is there and ends; otherwise a batch starts every `trigger_seconds`, or without
    these as soon as the last has ended. `fingerprint` says where the rows come from (kind of source and plan): the
    offsets in a checkpoint mean nothing for another source. `lateness` replaces the job's own allowance, where it has
    one. `services` are the URLs, by name, of what the job asks besides Spark. `provider` is the class of the state
    store for a new checkpoint (see `provider_of`), instead of the session's; an old one keeps its own. Raises
    UserError, before anything is started or written, when checkpoint or output belong to something else.
    """
    _claim(job, checkpoint, sink, fingerprint)
    named = {} if job.lateness is None else {"lateness": lateness or job.lateness}
    named |= {name: (services or {})[name] for name in job.services}
    for table in inputs.values():
        make_importable(table.sparkSession)
    rows = job.transform(*(inputs[name] for name in job.inputs), **named)
    trigger: dict[str, Any] = {"processingTime": f"{round((trigger_seconds or 0) * 1000)} milliseconds"}
    writer = (
        sink.write(job, rows, checkpoint)
        .queryName(job.name)
        .outputMode(job.output_mode)
        .option("checkpointLocation", str(checkpoint))
        .trigger(**({"availableNow": True} if available_now else trigger))
    )
    conf = store_conf(provider or rows.sparkSession.conf.get(PROVIDER))
    if job.timers and available_now:  # without input the timers' batches would go on for ever and the query never end
        conf["spark.sql.streaming.noDataMicroBatches.enabled"] = "false"
    with temporary_conf(rows.sparkSession, conf):
        return writer.start()


def provider_of(job: Job, chosen: Mapping[str, str]) -> str | None:
    """The class of the state store for `job`: the one in the settings that a user chose, else memory where its
    state fits the heap; None for that of the session."""
    return chosen.get(PROVIDER, IN_MEMORY if job.fits_heap else None)


def store_conf(provider: str) -> dict[str, str]:
    """The settings of a query that keeps its state in stores of this class."""
    # no class but RocksDB's has a join's state in one store
    return {PROVIDER: provider} if provider == ROCKSDB else {PROVIDER: provider, JOIN_VERSION: "2"}


def _claim(job: Job, checkpoint: Path, output: Sink, fingerprint: str) -> None:
    """Marks the checkpoint as the job's, or refuses: a note beside it says whose it is, its logs what it has done."""
    note = checkpoint.with_name(f"{checkpoint.name}.job.json")
    wanted = {"job": job.name, "fingerprint": fingerprint}
    log = BatchLog(checkpoint)
    planned, done = log.newest_planned, log.newest_committed
    try:
        found = dict(json.loads(read_text(note)))
    except FileNotFoundError:
        found = None
    except (OSError, ValueError, TypeError, RecursionError) as error:
        raise UserError(f"cannot read {note} ({error}); move {checkpoint} and {output} away to start over") from None
    if planned is not None and found is None:
        raise UserError(
            f"{checkpoint} is the checkpoint of an unknown query, without {note.name}; choose another folder"
        )
    if found is not None and found.get("job") != job.name:
        raise UserError(
            f"{checkpoint} is the checkpoint of job {found.get('job')}, not {job.name}; choose another folder"
        )
    if found is not None and found != wanted and planned is not None:
        raise UserError(
            f"{checkpoint} belongs to another source ({found.get('fingerprint')}, now {fingerprint}); "
            f"choose another folder, or move it and {output} away to start over"
        )
    if output.remembers:
        _compare(checkpoint, planned, done, output, output.last_batch(job, checkpoint))
    if found != wanted:
        note.parent.mkdir(parents=True, exist_ok=True)
        write_json(note, wanted)  # whole or not at all: half a note would lock out a good checkpoint


def _compare(checkpoint: Path, planned: int | None, done: int | None, output: Sink, written: int | None) -> None:
    # the sink skips batches that it has: if it has more than were planned, new rows would be taken for written ones
    if written is not None and (planned is None or written > planned):
        raise UserError(f"{output} has batches that {checkpoint} does not have; move the output away")
    if done is not None and (written is None or written < done):
        raise UserError(
            f"{output} lacks batches that {checkpoint} has committed; put the output back, or move the checkpoint away"
        )
