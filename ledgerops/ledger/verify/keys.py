"""No key twice: a hash of each row's key, in passes that keep at most MAX_KEYS of them."""

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from ledgerops.ledger.plan.digest import hash_values
from ledgerops.ledger.plan.seeded_hash import GOLDEN, Hashes
from ledgerops.ledger.verify.outputs import Output
from ledgerops.ledger.verify.result import MAX_EXAMPLES

MAX_KEYS = 16_000_000  # 128 MB


def repeated(output: Output, key: Sequence[str]) -> tuple[int, list[str]]:
    """How many rows have the key of another, and some of these keys."""
    passes = max(1, -(-output.rows // MAX_KEYS))
    count, twice = 0, np.empty(0, np.uint64)
    for part in range(passes):
        hashes = [np.empty(0, np.uint64)]
        for _, each in _keys(output, key):
            hashes.append(each[each % np.uint64(passes) == part])
        ids, counts = np.unique(np.concatenate(hashes), return_counts=True)
        count += int((counts - 1).sum())
        twice = np.concatenate([twice, ids[counts > 1][: MAX_EXAMPLES - len(twice)]])
    return count, _named(output, key, twice) if count else []


def _named(output: Output, key: Sequence[str], wanted: Hashes) -> list[str]:
    found: dict[int, str] = {}
    for batch, hashes in _keys(output, key):
        for place in np.flatnonzero(np.isin(hashes, wanted)).tolist():
            found[int(hashes[place])] = " ".join(str(column[place].as_py()) for column in batch.columns)
    return sorted(found.values())


def _keys(output: Output, key: Sequence[str]) -> Iterator[tuple[pa.RecordBatch, Hashes]]:
    for batch in output.batches(key):
        found = np.zeros(batch.num_rows, np.uint64)
        for column in batch.columns:
            found = found * np.uint64(GOLDEN) + hash_values(column)
            found ^= found >> np.uint64(29)
        yield batch, found
