"""Batches against their interval: what they owe, those that are late, and stalls of the sink."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from tests.evidence.recompute.batch import ground, parts_of
from tests.evidence.recompute.shared import Formula, median_of, plain
from tests.evidence.tape import OVER, REMEMBERED, Batch, Json, Tape

# late batches, share owed, seconds, whether the first ten seconds of a run do not count
PROOFS = ((4, 0.05, 20.0, True), (3, 0.25, 0.0, True), (2, 0.67, 22.0, False), (1, 0.9, 20.0, False))
NAMED = ((3, 0.2, 60.0, True), (2, 0.67, 40.0, False))


class Row(NamedTuple):
    """Batches from a late one on; the running one is None."""

    batches: Sequence[Batch | None]
    late: Sequence[tuple[Batch | None, float]]
    span: float
    share: float
    settled: bool

    def proves(self, late: int, share: float, seconds: float, settled: bool) -> bool:
        enough = len(self.late) >= late and self.share >= share and self.span >= seconds
        return enough and (self.settled or not settled)


def _rows(tape: Tape) -> list[Row]:
    whole, interval = tape.without_first(), tape.interval
    newest = [batch for batch in whole if batch.end >= tape.now - 120]
    newest = newest if len(newest) >= 5 else whole[-5:]
    if not interval or tape.plan.get("trigger") in ("available_now", "once"):
        return []
    began = [batch.start for batch in newest]
    turns: list[tuple[Batch | None, float, float]] = []
    for batch, until in zip(newest, [*began[1:], float("inf")], strict=True):
        turns.append((batch, batch.seconds, min(until - batch.start, max(batch.seconds, interval))))
    running = tape.running_seconds
    if running is not None and running > OVER * interval:
        turns.append((None, running, running))
    late = [place for place, (_, seconds, _) in enumerate(turns) if seconds > OVER * interval]
    if not late or _over(tape, len(turns), late):
        return []
    found = []
    for first in late:
        row, span = turns[first:], sum(taken for _, _, taken in turns[first:])
        own = [(turns[place][0], turns[place][1]) for place in late if place >= first]
        head, steady = row[0][0], tape.steady
        settled = bool(steady) and (head is None or head.start >= steady[0].start)
        owed = max(0.0, 1 - interval * len(row) / span)
        found.append(Row([batch for batch, _, _ in row], own, span, owed, settled))
    return found


def _over(tape: Tape, count: int, late: Sequence[int]) -> bool:
    """Whether the newest are in time for longer than they were between two late ones, or three get shorter in a row."""
    spacing = median_of(b - a for a, b in pairwise(late)) if len(late) > 1 else 1.0
    ended = [batch.seconds for batch in tape.run[-3:]]
    shorter = len(ended) == 3 and ended[0] > ended[1] > ended[2] and ended[2] < 0.8 * ended[0]
    return count - 1 - late[-1] > 1.5 * spacing or shorter


def _longest(rows: Sequence[Row]) -> Row | None:
    most = max((row.share for row in rows), default=0.0)
    return next((row for row in rows if row.share >= 0.7 * most), None)


def owed(tape: Tape) -> Row | None:
    return _longest([row for row in _rows(tape) if any(row.proves(*proof) for proof in PROOFS)])


def judged(tape: Tape) -> Sequence[Batch]:
    """The newest five late batches, unless only a few are late; else the newest five."""
    row, whole = owed(tape), tape.without_first()
    late = [batch for batch, _ in row.late if batch is not None] if row else []
    if row is None or not late or len(row.late) < 0.4 * len(row.batches):
        late = whole
    return late[-5:] or tape.run[-1:]


def _overrun(tape: Tape) -> Row:
    found = _longest([row for row in _rows(tape) if any(row.proves(*proof) for proof in NAMED)])
    if found is None:
        raise ValueError("nothing is owed")
    return found


def _long_batches(tape: Tape) -> float:
    newest = tape.steady[-3:]
    return median_of(each.seconds for each in (newest if len(newest) == 3 else [b for b in tape.run if b.rows]))


class Stalls(NamedTuple):
    """The newest batches, the slow ones of them, those of these that follow none, and the usual seconds."""

    batches: Sequence[Batch]
    slow: Sequence[Batch]
    firsts: Sequence[Batch]
    usual: float


def _stalls(tape: Tape) -> Stalls:
    found = _stalls_of(tape, tape.steady)
    return found if len(found.firsts) not in (1, 2) else _stalls_of(tape, tape.without_first())


def _stalls_of(tape: Tape, batches: Sequence[Batch]) -> Stalls:
    window = [batch for batch in batches if batch.start >= tape.now - 120][-60:]
    usual, rows = median_of(batch.seconds for batch in window), median_of(batch.rows for batch in window)
    least = max(3 * usual, usual + 1.0, OVER * tape.interval)
    slow = [b for b in window if b.seconds > max(least, 2 * usual * max(1.0, b.rows / max(1.0, rows)))]
    firsts = [b for before, b in pairwise([None, *window]) if b in slow and before not in slow]
    return Stalls(window, slow, firsts, usual)


def _waiting_share(tape: Tape, finding: Json) -> float:
    found, known = _stalls(tape), ground(tape)
    shares = []
    for batch in found.slow:
        parts, excess = parts_of(tape, batch, known), batch.seconds - found.usual
        if "driver_before" not in parts:
            continue
        idle = sum(parts[f"driver_{where}"] for where in ("before", "between")) + parts["after_tasks"]
        uneven = sum(seconds for name, seconds in parts.items() if name.startswith("uneven"))
        shares.append(min(1.0, (idle + parts["sink_wait"] + parts["waiting"]) / excess) - min(1.0, uneven / excess))
    before = median_of(batch.phase("addBatch") for batch in found.batches)
    adding = [min(1.0, (each.phase("addBatch") - before) / (each.seconds - found.usual)) for each in found.slow]
    return median_of(shares or adding)


FORMULAS: Mapping[str, Formula] = {
    "owed_share": plain(lambda tape: _overrun(tape).share),
    "trigger-overrun: batch_seconds_median": plain(lambda tape: median_of(each for _, each in _overrun(tape).late)),
    "long-batches: batch_seconds_median": plain(_long_batches),
    "rate-limited: batch_seconds_median": plain(lambda tape: median_of(each.seconds for each in tape.steady[-5:])),
    "query-stuck: batch_seconds_median": plain(
        lambda tape: median_of(each.seconds for each in tape.without_first()[-REMEMBERED:])
    ),
    "slow_batches": plain(lambda tape: float(len(_stalls(tape).slow))),
    "batches": plain(lambda tape: float(len(_stalls(tape).batches))),
    "usual_batch_seconds": plain(lambda tape: _stalls(tape).usual),
    "slow_batch_excess_seconds": plain(
        lambda tape: median_of(each.seconds for each in _stalls(tape).slow) - _stalls(tape).usual
    ),
    "slow_batch_spacing_seconds": plain(
        lambda tape: median_of(later.start - earlier.start for earlier, later in pairwise(_stalls(tape).firsts))
    ),
    "waiting_share_of_excess": _waiting_share,
}
