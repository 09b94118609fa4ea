"""Arrival against what is worked off, and backlogs that shrink."""

from __future__ import annotations

from collections.abc import Mapping

from tests.evidence.recompute.shared import Formula, backlog, falling_delay, head, newest_of
from tests.evidence.tape import Json, Tape


def _arrival(tape: Tape, finding: Json) -> float | None:
    latest = tape.run[-3:]
    per_offset = _rows_per_offset(tape)
    looks = [batch.start + batch.phase("latestOffset") for batch in latest]
    if not latest[0].heads:  # without heads, what each batch read came since the one before it asked
        return sum(batch.rows for batch in latest[1:]) / (looks[-1] - looks[0])
    return (head(latest[-1]) - head(latest[0])) * per_offset / (looks[-1] - looks[0])


def _rows_per_offset(tape: Tape) -> float:
    """Over the batches whose beginning is told: Spark says nothing of where the first one began."""
    read, rows = 0, 0
    for batch in tape.run[-60:]:
        began = batch.began_at_offsets
        offsets = sum(max(0, end - began[place]) for place, end in batch.ended_at_offsets.items() if place in began)
        if offsets and batch.rows:
            read, rows = read + offsets, rows + batch.rows
    return rows / read if read else 1.0


def _worked_off(tape: Tape, finding: Json) -> float | None:
    latest = tape.run[-3:]
    return sum(batch.rows for batch in latest) / sum(max(batch.seconds, tape.interval) for batch in latest)


def _ratio(tape: Tape, finding: Json) -> float | None:
    arrival, worked = _arrival(tape, finding), _worked_off(tape, finding)
    return arrival / worked if arrival is not None and worked else None


def _breach(tape: Tape, finding: Json) -> float | None:
    """By the ratio that the finding tells, which is computed apart: near 1 the least rounding of it moves the end."""
    ratio = next((each["value"] for each in finding["evidence"] if each["name"] == "arrival_ratio"), None)
    lag = _result_lag(tape, finding)
    return max(0.0, 60.0 - lag) / (1 - 1 / ratio) if ratio and ratio > 1 and lag is not None else None


def _result_lag(tape: Tape, finding: Json) -> float | None:
    by_batches = falling_delay(tape, finding)
    return tape.lag() if by_batches is None else by_batches


def _falls_by(tape: Tape, finding: Json) -> float | None:
    run = [batch for batch in tape.run if batch.heads]  # one that is repeated after a crash has not asked for any
    before = run[-13] if len(run) >= 13 else run[0]
    return (backlog(before) - backlog(run[-1])) / (run[-1].end - before.end)


def _drain(tape: Tape, finding: Json) -> float | None:
    falls = _falls_by(tape, finding)
    return backlog(newest_of(tape)) / falls if falls else None


def _away(tape: Tape, finding: Json) -> float | None:
    before = [at for at, run in tape.ends if run != tape.run_id]
    starts = [at for at, run in tape.starts if run == tape.run_id]
    return starts[0] - before[-1] if before and starts else None


FORMULAS: Mapping[str, Formula] = {
    "arrival_rows_per_second": _arrival,
    "worked_off_rows_per_second": _worked_off,
    "arrival_ratio": _ratio,
    "seconds_to_breach": _breach,
    "input-overload: result_delay_seconds": falling_delay,
    "backlog_falls_by": _falls_by,
    "seconds_to_drain": _drain,
    "away_seconds": _away,
}
