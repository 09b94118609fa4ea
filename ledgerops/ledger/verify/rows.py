"""Rows that must be passed on: counts and digests show whether all are correct, and if not, which rows are wrong.

The first pass reads the output once and keeps nothing of a row. Only when it does not agree are the records made again
(from the plan or the file) and compared by hashes of their ids: 32 bytes for each row of both sides, in as many passes
as keep that below PASS_ROWS rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ledgerops.ledger.plan.digest import ID, row_hashes
from ledgerops.ledger.plan.record_stream import Rows, Stream, chunks
from ledgerops.ledger.plan.summary import Tally, money
from ledgerops.ledger.verify.outputs import Output
from ledgerops.ledger.verify.result import MAX_EXAMPLES, JobCheck

Hashes = NDArray[np.uint64]
PASS_ROWS = 8_000_000  # of both sides together: some 250 MB


@dataclass(frozen=True)
class ExpectedRows:
    """What the output must hold: each of the stream's rows as often as it was sent, or `once`."""

    tally: Tally
    once: bool


@dataclass
class Difference:
    """How many rows of an output are wrong, and in which way."""

    lost: int = 0
    late: int = 0  # of the lost: those that may be missing
    repeated: int = 0
    changed: int = 0
    unknown: int = 0  # rows of an id that was never sent
    ids: dict[str, list[int]] = field(default_factory=dict)  # hashes of some ids, by what is wrong with them

    def note(self, what: str, ids: Hashes) -> None:
        """Keeps hashes of ids as examples of the problem `what`, at most MAX_EXAMPLES for each problem."""
        known = self.ids.setdefault(what, [])
        known += [int(each) for each in ids[: MAX_EXAMPLES - len(known)]]


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
    apart = []
    if "amount" in columns and "type" in columns:
        for kind in sorted({*found.amounts, *wanted.amounts}):
            apart.append((kind, found.amounts.get(kind, 0) - wanted.amounts.get(kind, 0)))
    if "balance" in columns:
        apart.append(("balance", found.balances - wanted.balances))
    if not apart:
        return None
    sums = [f"{kind} {'+' if cents > 0 else ''}{money(cents)}" for kind, cents in apart if cents]
    return ", ".join(sums) or "equal"


def compare(
    output: Output, sent_records: SentRecords, wanted: ExpectedRows, columns: Sequence[str], late_after: float | None
) -> Difference:
    """Compares row by row. Rows that came more than `late_after` seconds late may be missing; None: none may."""
    total = output.rows + wanted.tally.rows
    passes = max(1, -(-total // PASS_ROWS))
    difference = Difference()
    for part in range(passes):
        _compare_part(difference, output, sent_records, wanted.once, columns, late_after, (part, passes))
    return difference


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


def _compare_part(
    difference: Difference,
    output: Output,
    sent_records: SentRecords,
    once: bool,
    columns: Sequence[str],
    late_after: float | None,
    part: tuple[int, int],
) -> None:
    sent, pairs, late = _hashes_sent(sent_records, once, columns, late_after, part)
    got, got_rows = _hashes_written(output, columns, part)
    ids, first, sent_count = np.unique(sent, return_index=True, return_counts=True)
    may_miss = late[first]
    places = np.searchsorted(ids, got)
    places[places == len(ids)] = 0
    known = ids[places] == got if len(ids) else np.zeros(len(got), np.bool_)
    difference.unknown += int(np.count_nonzero(~known))
    difference.note("unknown", np.unique(got[~known]))
    places = places[known]
    # copies may have been sent with different values, and each of them is right
    other = ~np.isin(_paired(got[known], got_rows[known]), pairs)
    difference.changed += int(np.count_nonzero(other))
    difference.note("changed", np.unique(ids[places[other]]) if len(ids) else got[:0])
    got_count = np.bincount(places, minlength=len(ids))
    missing, more = np.maximum(sent_count - got_count, 0), np.maximum(got_count - sent_count, 0)
    difference.late += int(missing[may_miss].sum())
    missing[may_miss] = 0
    difference.lost += int(missing.sum())
    difference.repeated += int(more.sum())
    difference.note("lost", ids[missing > 0])
    difference.note("repeated", ids[more > 0])


def _hashes_sent(
    sent_records: SentRecords, once: bool, columns: Sequence[str], late_after: float | None, part: tuple[int, int]
) -> tuple[Hashes, Hashes, NDArray[np.bool_]]:
    """The ids that must come, all pairs of id and values that may, and which of the ids may be missing."""
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
    return ids * np.uint64(0x9E3779B97F4A7C15) ^ values


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


def texts(difference: Difference, sent_records: SentRecords, output: Output) -> Mapping[str, Sequence[str]]:
    """The ids of which the difference keeps the hashes, as text, by what is wrong with them."""
    wanted = {each for ids in difference.ids.values() for each in ids}
    found: dict[int, str] = {}
    batches = (rows.batch.select([ID]) for rows in sent_records.rows())
    for part in (batches, output.batches([ID])):
        for batch in part:
            if len(found) == len(wanted):
                break
            hashes = row_hashes(batch)[ID]
            for place in np.flatnonzero(np.isin(hashes, np.array(list(wanted), np.uint64))).tolist():
                found[int(hashes[place])] = str(batch.column(0)[place].as_py())
    return {what: sorted(found.get(each, "?") for each in ids) for what, ids in difference.ids.items() if ids}


def record_difference(result: JobCheck, difference: Difference, names: Mapping[str, Sequence[str]]) -> None:
    """Puts the difference into the result; an id that was never sent counts as changed."""
    result.lost, result.repeated = difference.lost, difference.repeated
    result.changed = difference.changed + difference.unknown
    if difference.late:
        result.notes.append(f"missing because they arrived after the watermark: {difference.late:,}")
    if difference.unknown:
        result.notes.append(f"rows with an id that was never sent: {difference.unknown:,}")
    result.examples = {what: names.get(what, ()) for what in ("lost", "repeated")}
    result.examples["changed"] = [*names.get("changed", ()), *names.get("unknown", ())][:MAX_EXAMPLES]
