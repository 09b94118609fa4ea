"""A table kept as an Arrow file, its rows grouped by source partition, from which a data source reads by offset.

Within a partition rows keep the order of the original; the column `position` says where in the original each stood, so
that the first n rows of the original correspond to exactly one offset per partition.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from ledgerops.common.files import replacing
from ledgerops.errors import UserError, os_reason
from ledgerops.ledger.sources.csv_file import Reject, keep_rejects, rejected

BATCH_ROWS = 65_536
POSITION = "position"
FORMAT = "1"  # part of the file name: a file of another layout is not reused


@dataclass(frozen=True)
class Prepared:
    """An Arrow file that executors read by path; on a cluster `path` must be on storage that all of them share."""

    path: Path
    counts: tuple[int, ...]  # rows of each source partition
    rejected: int

    @property
    def rows(self) -> int:
        """Number of rows in the file, without the rejected ones."""
        return sum(self.counts)


class FileRows:
    """The rows of a file, `rate` a second in the order of the original; 0: all at once.

    A file that has only grown at its end still knows the offsets that it had.
    """

    total: int

    def __init__(self, path: Path, rate: float = 0.0) -> None:
        self._path, self._rate = path, rate
        with pa.memory_map(str(path)) as source:
            positions = pa.ipc.open_file(source).read_all()[POSITION].to_numpy()
        *self._begins, self.total = 0, *accumulate(describe(path).counts)  # of each partition in the file
        # by partition, ascending: where each of its rows stood in the original
        self.positions = np.split(positions, self._begins[1:])

    def due(self, seconds: float) -> int:
        """How many rows have arrived after so many seconds."""
        if self._rate == 0:
            return self.total
        return min(self.total, max(0, int(seconds * self._rate)))

    def heads(self, count: int) -> list[int]:
        """How many of the first `count` rows of the original each partition holds."""
        return [int(np.searchsorted(each, count)) for each in self.positions]

    def batches(self, partition: int, start: int, end: int) -> Iterator[pa.RecordBatch]:
        """Rows [start, end) of a partition, at most 65,536 a batch."""
        with pa.memory_map(str(self._path)) as source:
            table = pa.ipc.open_file(source).read_all().drop_columns([POSITION])
            yield from table.slice(self._begins[partition] + start, end - start).to_batches(max_chunksize=BATCH_ROWS)


def table_of(rows: Sequence[tuple[Any, ...]], schema: pa.Schema) -> pa.Table:
    """The rows as a table; each has its values in the order of the schema."""
    columns = zip(*rows, strict=True) if rows else [() for _ in schema]
    arrays = [pa.array(values, field.type) for field, values in zip(schema, columns, strict=True)]
    return pa.Table.from_arrays(arrays, schema=schema)


# a table, the partition of each row (None: all in the first) and the rows that were refused
Made = tuple[pa.Table, Sequence[int] | None, list[Reject]]


def keep(folder: Path, name: str, content: str, partitions: int, make: Callable[[], Made]) -> Prepared:
    """The Arrow file for `content` (a hash) in `folder`; `make` is called only when an earlier run has not left it.

    What `make` refuses is kept under `name`.
    """
    path = folder / f"{Path(name).stem}-{content}-{FORMAT}.arrow"
    if path.is_file():
        found = describe(path)
        if found.rejected == sum(entry["content"] == content for entry in rejected(folder)):
            return found
    table, partition, rejects = make()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        keep_rejects(folder, name, content, rejects)
        if table.num_rows == 0:
            raise UserError(f"no usable row in {name}: {len(rejects)} rejected, see {folder / 'rejects.jsonl'}")
        places = np.zeros(table.num_rows, np.int64) if partition is None else np.asarray(partition)
        _write(path, table, places, partitions, len(rejects))
    except OSError as problem:
        raise UserError(f"cannot write {folder}: {os_reason(problem)}") from problem
    return describe(path)


def _write(path: Path, table: pa.Table, partition: np.ndarray, partitions: int, rejects: int) -> None:
    order = np.argsort(partition, kind="stable")
    counts = np.bincount(partition, minlength=partitions).tolist()
    grouped = table.append_column(POSITION, pa.array(np.arange(table.num_rows))).take(pa.array(order))
    facts = {"counts": ",".join(map(str, counts)), "rejected": str(rejects)}
    schema = grouped.schema.with_metadata(facts)
    with replacing(path) as part, pa.OSFile(str(part), "wb") as sink, pa.ipc.new_file(sink, schema) as writer:
        writer.write_table(grouped.combine_chunks(), max_chunksize=BATCH_ROWS)


def describe(path: Path) -> Prepared:
    """What an Arrow file holds, from its footer."""
    with pa.memory_map(str(path)) as source:
        facts = pa.ipc.open_file(source).schema.metadata
    counts = tuple(int(count) for count in facts[b"counts"].split(b","))
    return Prepared(path, counts, int(facts[b"rejected"]))
