"""Rows that must be passed on: counts and digests show whether all are correct, and if not, which rows are wrong.

The first pass reads the output once and keeps nothing of a row. Only when it does not agree are the records made again
(from the plan or the file) and compared by hashes of their ids: 32 bytes for each row of both sides, in as many passes
as keep that below PASS_ROWS rows.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence, Set
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ledgerops.ledger.plan.digest import ID, row_hashes
from ledgerops.ledger.plan.record_stream import Rows, Stream, chunks
from ledgerops.ledger.plan.seeded_hash import GOLDEN, Hashes
from ledgerops.ledger.plan.summary import Tally
from ledgerops.ledger.verify.outputs import Output
from ledgerops.ledger.verify.result import MAX_EXAMPLES, JobCheck, apart

PASS_ROWS = 8_000_000  # of both sides together: some 250 MB


def read(output: Output, columns: Sequence[str], show: Callable[[int], None] = lambda rows: None) -> Tally:
    """The tally of the output's rows in `columns`."""
    tally = Tally()
    for batch in output.batches(columns):
        tally.add(batch, row_hashes(batch), None)
        show(batch.num_rows)
    return tally


def agrees(found: Tally, wanted: Tally, columns: Sequence[str]) -> bool:
    """Whether both are the same rows in these columns; see `digest` for how sure that is."""
    return found.rows == wanted.rows and all(
        found.digests.get(name, 0) == wanted.digests.get(name, 0) for name in columns
    )


def money_of(found: Tally, wanted: Tally, columns: Sequence[str]) -> str | None:
    """Whether the sums of money are equal, else by how much the output's are more or less."""
    sums = {}
    if "amount" in columns and "type" in columns:
        for kind in sorted({*found.amounts, *wanted.amounts}):
            sums[kind] = found.amounts.get(kind, 0) - wanted.amounts.get(kind, 0)
    if "balance" in columns:
        sums["balance"] = found.balances - wanted.balances
    if not sums:
        return None
    return ", ".join(filter(None, map(apart, sums, sums.values()))) or "equal"


@dataclass(frozen=True)
class SentRecords:
    """The stream's first `records` records, those that `keep` lets through."""

    stream: Stream
    records: int
    keep: Callable[[Rows], Rows] = lambda rows: rows

    def rows(self) -> Iterator[Rows]:
        """The rows sent, in chunks in the order of the stream, after `keep`."""
        for _, rows in chunks(self.stream, self.records):
            yield self.keep(rows)


def compare(
    result: JobCheck,
    output: Output,
    sent: SentRecords,
    wanted: Tally,
    once: bool,
    columns: Sequence[str],
    late_after: float | None,
    perhaps: SentRecords | None = None,
) -> None:
    """Compares row by row with what was sent, or `once` was, and fills the result; `wanted` is the tally of that.

    Rows that came more than `late_after` seconds late may be missing; None: none may. Those of `perhaps` with the same
    ids may come as well. An id that was never sent counts as changed.
    """
    passes = max(1, -(-(output.rows + wanted.rows) // PASS_ROWS))
    counts: Counter[str] = Counter()
    ids: dict[str, list[int]] = {}
    for part in range(passes):
        for what, count, some in _differences(output, sent, once, columns, late_after, perhaps, (part, passes)):
            counts[what] += count
            ids[what] = [*ids.get(what, ()), *some[:MAX_EXAMPLES].tolist()][:MAX_EXAMPLES]
    result.lost, result.repeated = counts["lost"], counts["repeated"]
    result.changed = counts["changed"] + counts["unknown"]
    if counts["late"]:
        result.notes.append(f"missing because they arrived after the watermark: {counts['late']:,}")
    if counts["perhaps"]:
        result.notes.append(
            f"exact copies written, as where another amount is taken for the first: {counts['perhaps']:,}"
        )
    if counts["unknown"]:
        result.notes.append(f"rows with an id that was never sent: {counts['unknown']:,}")
    names = _texts({each for some in ids.values() for each in some}, sent, output)
    named = {what: sorted(names.get(each, "?") for each in some) for what, some in ids.items()}
    changed = [*named["changed"], *named["unknown"]][:MAX_EXAMPLES]
    result.examples = {"lost": named["lost"], "repeated": named["repeated"], "changed": changed}


def _differences(
    output: Output,
    sent_records: SentRecords,
    once: bool,
    columns: Sequence[str],
    late_after: float | None,
    perhaps: SentRecords | None,
    part: tuple[int, int],
) -> Iterator[tuple[str, int, Hashes]]:
    """What is wrong, with how many rows, and the hashes of their ids."""
    sent, pairs, late = _hashes_sent(sent_records, once, columns, late_after, part)
    got, got_rows = _hashes_written(output, columns, part)
    ids, of_id, sent_count = np.unique(sent, return_inverse=True, return_counts=True)
    late_count = np.bincount(of_id.reshape(-1)[late], minlength=len(ids))  # of a transaction and its copies
    places = np.searchsorted(ids, got)
    places[places == len(ids)] = 0
    known = ids[places] == got if len(ids) else np.zeros(len(got), np.bool_)
    yield "unknown", int(np.count_nonzero(~known)), np.unique(got[~known])
    places = places[known]
    # copies may have been sent with different values, and each of them is right
    other = ~np.isin(_paired(got[known], got_rows[known]), pairs)
    yield "changed", int(np.count_nonzero(other)), np.unique(ids[places[other]]) if len(ids) else got[:0]
    got_count = np.bincount(places, minlength=len(ids))
    missing, more = np.maximum(sent_count - got_count, 0), np.maximum(got_count - sent_count, 0)
    dropped = np.minimum(missing, late_count)
    yield "late", int(dropped.sum()), ids[:0]
    missing -= dropped
    yield "lost", int(missing.sum()), ids[missing > 0]
    if perhaps is not None:
        copies, _, _ = _hashes_sent(perhaps, False, [ID], None, part)
        places = np.searchsorted(ids, copies[np.isin(copies, ids)])
        spare = np.minimum(more, np.bincount(places, minlength=len(ids)))
        yield "perhaps", int(spare.sum()), ids[:0]
        more -= spare
    yield "repeated", int(more.sum()), ids[more > 0]


def _hashes_sent(
    sent_records: SentRecords, once: bool, columns: Sequence[str], late_after: float | None, part: tuple[int, int]
) -> tuple[Hashes, Hashes, NDArray[np.bool_]]:
    """The ids that must come, all pairs of id and values that may, and which of the first were late."""
    ids, pairs, late = [np.empty(0, np.uint64)], [np.empty(0, np.uint64)], [np.empty(0, np.bool_)]
    for each in sent_records.rows():
        id_, value = _hashed(each.batch.select(columns))
        mine = id_ % np.uint64(part[1]) == part[0]
        pairs.append(_paired(id_[mine], value[mine]))
        if once:
            mine &= each.first
        ids.append(id_[mine])
        late.append(each.delays[mine] > (np.inf if late_after is None else late_after))
    return np.concatenate(ids), np.unique(np.concatenate(pairs)), np.concatenate(late)


def _paired(ids: Hashes, values: Hashes) -> Hashes:
    # an odd factor keeps all bits, and a pair apart from the pair the other way round
    return ids * np.uint64(GOLDEN) ^ values


def _hashes_written(output: Output, columns: Sequence[str], part: tuple[int, int]) -> tuple[Hashes, Hashes]:
    ids, values = [np.empty(0, np.uint64)], [np.empty(0, np.uint64)]
    for batch in output.batches(columns):
        id_, value = _hashed(batch)
        mine = id_ % np.uint64(part[1]) == part[0]
        ids.append(id_[mine])
        values.append(value[mine])
    return np.concatenate(ids), np.concatenate(values)


def _hashed(rows: pa.RecordBatch) -> tuple[Hashes, Hashes]:
    """The hash of each id, and one of the whole row."""
    hashes = row_hashes(rows)
    # the hash of a column is bound to its name, so their sum is one of the row
    whole = np.sum([each for name, each in hashes.items() if name != ID], axis=0, dtype=np.uint64)
    return hashes[ID], np.broadcast_to(whole, len(hashes[ID]))


def _texts(wanted: Set[int], sent_records: SentRecords, output: Output) -> dict[int, str]:
    """The ids that have these hashes, as text."""
    found: dict[int, str] = {}
    batches = (rows.batch.select([ID]) for rows in sent_records.rows())
    for part in (batches, output.batches([ID])):
        for batch in part:
            if len(found) == len(wanted):
                break
            hashes = row_hashes(batch)[ID]
            for place in np.flatnonzero(np.isin(hashes, np.array(list(wanted), np.uint64))).tolist():
                found[int(hashes[place])] = str(batch.column(0)[place].as_py())
    return found
