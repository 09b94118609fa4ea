"""A checkpoint, from its files: batches, settings, operators, and the batches whose state can be read.

Read without Spark and without writing. The query may go on meanwhile: what is read is what was there at the time.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ledgerops.checkpoint.batch_log import BatchLog, is_checkpoint
from ledgerops.checkpoint.operators import DEFAULT, Operator, read_operators
from ledgerops.checkpoint.store_files import StoreFiles, scan
from ledgerops.errors import UserError, cannot_read

STORE = "spark.sql.streaming.stateStore."
Place = tuple[int, int, str]  # operator, partition, store


@dataclass(frozen=True)
class Checkpoint:
    """What is in the folder of one query."""

    path: Path
    query_id: str | None
    conf: Mapping[str, str]  # the settings that the checkpoint holds on to, of the newest committed batch
    committed: tuple[int, ...]  # batches whose plan and commit are both there, in order
    operators: tuple[Operator, ...]  # none: the query keeps no state
    files: Mapping[Place, StoreFiles]
    kept: tuple[int, ...]  # batches of which all state can be read, in order

    @property
    def provider(self) -> str:
        """rocksdb, hdfs, or the name of another provider's class."""
        name = self.conf.get(f"{STORE}providerClass", "").rsplit(".", 1)[-1]
        return {"RocksDBStateStoreProvider": "rocksdb", "HDFSBackedStateStoreProvider": "hdfs"}.get(name, name)

    @property
    def span(self) -> str:
        """The batches that are kept, in words."""
        first, last = self.kept[0], self.kept[-1]
        whole = len(self.kept) == last - first + 1
        return f"batch {first}" if first == last else f"batches {first} to {last}{'' if whole else ', some missing'}"

    def of(self, operator: Operator, store: str | None = None) -> dict[tuple[int, str], StoreFiles]:
        """The stores of an operator (or the one named), by partition and store."""
        return {
            (partition, name): files
            for (number, partition, name), files in self.files.items()
            if number == operator.id and store in (None, name)
        }


def open_checkpoint(path: Path) -> Checkpoint:
    """The checkpoint as it is now. Raises UserError when there is none, or nothing of it can be read."""
    if not path.exists():
        raise UserError(f"no such folder: {path}")
    no_batch = UserError(f"{path} has no committed batch yet: there is no state to read; wait for the first batch")
    if not is_checkpoint(path):
        if (path / "metadata").is_file():
            raise no_batch
        raise UserError(
            f"{path} is not a checkpoint (it has no offsets and metadata); give the folder that the query uses as "
            "checkpointLocation"
        )
    try:
        log = BatchLog(path)
        committed = tuple(sorted(log.planned & log.committed))
        if not committed:
            raise no_batch
        newest = log.batch(committed[-1])
        conf, partitions = newest.conf, newest.shuffle_partitions
        if conf is None:
            file = path / "offsets" / str(committed[-1])
            raise UserError(f"cannot read {file}: not a planned batch as Spark 4 writes it; is it damaged?")
        state = path / "state"
        operators = read_operators(state, committed[-1], partitions) if state.is_dir() else ()
    except OSError as error:
        raise cannot_read(path, error) from None
    files = {
        (operator.id, partition, store): scan(
            state / str(operator.id) / str(partition) / ("" if store == DEFAULT else store)
        )
        for operator in operators
        for partition in range(operator.partitions)
        for store in operator.stores
    }
    readable = [{version - 1 for version in store.readable} for store in files.values()]
    kept = sorted(set(committed).intersection(*readable))
    if operators:  # the files of those before a repartition are in other partitions
        kept = [batch for batch in kept if log.batch(batch).shuffle_partitions in (None, partitions)]
    checkpoint = Checkpoint(path, log.query_id, conf, committed, operators, files, tuple(kept))
    if operators and committed[-1] not in kept:
        raise UserError(_missing(checkpoint))
    return checkpoint


def _missing(checkpoint: Checkpoint) -> str:
    """Which files the newest batch lacks: a query writes them before it commits, so they were removed."""
    batch = checkpoint.committed[-1]
    for (operator, partition, store), files in checkpoint.files.items():
        if batch + 1 not in files.readable:
            none = not files.snapshots | files.changes
            what = "has no state files" if none else f"lacks files of version {batch + 1} or before"
            named = "" if store == DEFAULT else f", store {store}"
            return (
                f"{checkpoint.path} is incomplete: operator {operator}, partition {partition}{named} {what} in "
                f"{files.folder}; put them back from a backup, or start the query with a new checkpoint"
            )
    raise AssertionError("every store has the newest version")
