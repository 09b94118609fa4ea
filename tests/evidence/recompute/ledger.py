"""Books that balance, and transactions that contradict themselves."""

from __future__ import annotations

from collections.abc import Mapping

from tests.evidence.recompute.shared import Formula, plain
from tests.evidence.tape import Batch, Json, Tape


def _latest_30(tape: Tape) -> list[Batch]:
    return [batch for batch in tape.run if batch.end >= tape.now - 30] or tape.run[-1:]


def _booked(batch: Batch, side: str, key: str) -> float | None:
    rows = [row for name, row in batch.observed.items() if name.startswith(f"ledgerops_book_{side}")]
    return sum(float(row.get(key) or 0) for row in rows) if rows else None


def _both(batch: Batch, key: str) -> tuple[float, float] | None:
    entered, left = _booked(batch, "in", key), _booked(batch, "out", key)
    return (entered, left) if entered is not None and left is not None else None


def _unbalanced(tape: Tape) -> list[Batch]:
    def differs(batch: Batch) -> bool:
        return any(pair[0] != pair[1] for key in ("rows", "amount") if (pair := _both(batch, key)) is not None)

    return [batch for batch in _latest_30(tape) if differs(batch)]


def _missing(key: str) -> Formula:
    def of(tape: Tape, finding: Json) -> float | None:
        pairs = [pair for batch in _unbalanced(tape) if (pair := _both(batch, key)) is not None]
        return sum(entered - left for entered, left in pairs)

    return of


def _conflicts(batch: Batch) -> float:
    rows = [row for name, row in batch.observed.items() if name.startswith("ledgerops") and "_conflicts" in name]
    return float(sum(row.get("conflicts") or 0 for row in rows))


def _conflicting(tape: Tape, finding: Json) -> float | None:
    return sum(_conflicts(batch) for batch in _latest_30(tape))


def _conflicting_share(tape: Tape, finding: Json) -> float | None:
    rows = sum(batch.rows for batch in _latest_30(tape))
    return (_conflicting(tape, finding) or 0.0) / rows if rows else None


FORMULAS: Mapping[str, Formula] = {
    "unbalanced_batches": plain(lambda tape: float(len(_unbalanced(tape)))),
    "missing_rows": _missing("rows"),
    "missing_amount": _missing("amount"),
    "rows_booked": plain(lambda tape: sum(_booked(batch, "in", "rows") or 0.0 for batch in _latest_30(tape))),
    "conflicting_rows": _conflicting,
    "conflicting_share": _conflicting_share,
    "conflicting_batches": plain(lambda tape: float(sum(_conflicts(batch) > 0 for batch in _latest_30(tape)))),
}
