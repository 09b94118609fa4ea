"""State: its growth, its room, its commits, evictions and snapshots."""

from __future__ import annotations

from collections.abc import Mapping

from tests.evidence.recompute.shared import Formula, heap, newest_of, operator_of, parallel
from tests.evidence.tape import Batch, Json, Tape, middle


def _state_span(tape: Tape, finding: Json) -> list[Batch]:
    """From the newest of three still batches in a row on, if there are such: what came before was no growth."""
    steady, still = tape.steady, 0
    rows = [int(operator_of(tape, finding, batch)["numRowsTotal"]) for batch in steady]
    for place in range(len(steady) - 1, 0, -1):
        if rows[place] - rows[place - 1] < 0.05 * steady[place].rows:
            still += 1
        elif steady[place].rows:
            still = 0
        if still == 3:
            return list(steady[place + 2 :])
    return list(steady)


def _grown(tape: Tape, finding: Json, key: str) -> float | None:
    span = _state_span(tape, finding)
    first, last = (operator_of(tape, finding, batch)[key] for batch in (span[0], span[-1]))
    return float(last - first)


def _growth_per_second(tape: Tape, finding: Json) -> float | None:
    span = _state_span(tape, finding)
    grown = _grown(tape, finding, "numRowsTotal")
    return grown / (span[-1].end - span[0].end) if grown is not None and len(span) > 1 else None


def _kept(tape: Tape, finding: Json) -> float | None:
    rows = sum(batch.rows for batch in _state_span(tape, finding)[1:])
    grown = _grown(tape, finding, "numRowsTotal")
    return grown / rows if rows and grown is not None else None


def _bytes_a_day(tape: Tape, finding: Json) -> float | None:
    span = _state_span(tape, finding)
    grown = _grown(tape, finding, "memoryUsedBytes")
    return grown / (span[-1].end - span[0].end) * 86_400 if grown is not None and len(span) > 1 else None


def _removed(tape: Tape, finding: Json) -> float | None:
    return float(
        sum(operator_of(tape, finding, batch).get("numRowsRemoved", 0) for batch in _state_span(tape, finding))
    )


def _on_disk(finding: Json) -> bool:
    return "disk" in finding["summary"]


def _state_bytes_of(tape: Tape, finding: Json, batch: Batch) -> float:
    operator = operator_of(tape, finding, batch)
    if _on_disk(finding):
        return float((operator.get("customMetrics") or {}).get("rocksdbSstFileSize", 0))
    return float(operator["memoryUsedBytes"])


def _state_bytes(tape: Tape, finding: Json) -> float | None:
    return _state_bytes_of(tape, finding, newest_of(tape))


def _bytes_growth(tape: Tape, finding: Json) -> float | None:
    span = list(tape.steady)
    removed = [place for place, b in enumerate(span) if operator_of(tape, finding, b).get("numRowsRemoved", 0) > 0]
    span = span[removed[-1] :] if removed else _state_span(tape, finding)
    span = span[-30:] if _on_disk(finding) else span
    grown = _state_bytes_of(tape, finding, span[-1]) - _state_bytes_of(tape, finding, span[0])
    return grown / (span[-1].end - span[0].end) if len(span) > 1 else None


def _room(tape: Tape, finding: Json) -> float | None:
    newest = tape.hosts[-1]
    if _on_disk(finding):
        return float(newest["disk_free_bytes"])
    used = sum(each["memoryUsedBytes"] for each in newest_of(tape).operators)
    told = next((each["value"] for each in finding["evidence"] if each["name"] == "room_bytes"), 0.0)
    rooms = (max(0.0, heap(tape) - used), float(newest["memory_available_bytes"]))
    return float(min(rooms, key=lambda room: abs(room - told)))


def _to_limit(tape: Tape, finding: Json) -> float | None:
    room, growth = _room(tape, finding), _bytes_growth(tape, finding)
    return max(0.0, room) / growth if room is not None and growth else None


def _storm(tape: Tape, finding: Json) -> Batch:
    """The newest of the latest three that removed as many rows as the finding tells."""
    told = next(each["value"] for each in finding["evidence"] if each["name"] == "state_rows_removed")
    latest = reversed(tape.run[-3:])
    same = [batch for batch in latest if operator_of(tape, finding, batch).get("numRowsRemoved") == told]
    return same[0] if same else newest_of(tape)


def _usual_removed(tape: Tape, finding: Json) -> float | None:
    storm = _storm(tape, finding)
    return middle(
        operator_of(tape, finding, batch).get("numRowsRemoved", 0) for batch in tape.steady if batch.id != storm.id
    )


def _removal_wall(tape: Tape, finding: Json) -> float | None:
    operator = operator_of(tape, finding, _storm(tape, finding))
    return float(operator["allRemovalsTimeMs"] / 1000 / parallel(tape, operator))


def _uploaded(tape: Tape, finding: Json) -> int | None:
    custom = operator_of(tape, finding, newest_of(tape)).get("customMetrics", {})
    first = min(batch.id for batch in tape.all if batch.run == tape.run_id)
    versions = [int(value) for key, value in custom.items() if key.startswith("SnapshotLastUploaded.partition_")]
    return min(max(version, first) for version in versions) if versions else None


def _snapshot_lag(tape: Tape, finding: Json) -> float | None:
    oldest = _uploaded(tape, finding)
    return float(newest_of(tape).id + 1 - oldest) if oldest is not None else None


def _snapshot_age(tape: Tape, finding: Json) -> float | None:
    oldest = _uploaded(tape, finding)
    if oldest is None:
        return None
    made = next((batch for batch in tape.run if batch.id == oldest - 1), None)
    return newest_of(tape).end - (made.end if made else tape.run[0].start)


FORMULAS: Mapping[str, Formula] = {
    "ledgerops_state_rows": lambda tape, finding: float(operator_of(tape, finding, newest_of(tape))["numRowsTotal"]),
    "state_rows_growth_per_second": _growth_per_second,
    "unbounded-state: state_rows_removed": _removed,
    "state_rows_kept_per_row_read": _kept,
    "state_bytes_in_a_day": _bytes_a_day,
    "state_rows_in_a_day": lambda tape, finding: (_growth_per_second(tape, finding) or 0.0) * 86_400,
    "state_bytes": _state_bytes,
    "state_bytes_growth_per_second": _bytes_growth,
    "room_bytes": _room,
    "seconds_to_limit": _to_limit,
    "eviction-storm: state_rows_removed": lambda tape, finding: float(
        operator_of(tape, finding, _storm(tape, finding))["numRowsRemoved"]
    ),
    "usual_state_rows_removed": _usual_removed,
    "state_removal_wall_seconds": _removal_wall,
    "eviction-storm: batch_seconds": lambda tape, finding: _storm(tape, finding).seconds,
    "state_snapshot_lag_batches": _snapshot_lag,
    "state_snapshot_age_seconds": _snapshot_age,
}
