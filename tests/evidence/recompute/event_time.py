"""Dropped rows, and watermarks that stand still or jump."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise

from tests.evidence.recompute.shared import Formula, newest_of, operator_of, plain
from tests.evidence.tape import Batch, Json, Tape, instant, middle


def _dropped(batch: Batch, tape: Tape, finding: Json) -> float:
    return float(operator_of(tape, finding, batch).get("numRowsDroppedByWatermark", 0)) if batch.operators else 0.0


def _last_minute(tape: Tape) -> list[Batch]:
    return [batch for batch in tape.run if batch.end >= tape.now - 60]


def _dropped_minute(tape: Tape, finding: Json) -> float | None:
    return sum(_dropped(batch, tape, finding) for batch in _last_minute(tape))


def _dropped_share(tape: Tape, finding: Json) -> float | None:
    rows = sum(batch.rows for batch in _last_minute(tape))
    return min(1.0, (_dropped_minute(tape, finding) or 0.0) / rows) if rows else None


def _dropped_ever(tape: Tape, finding: Json) -> float | None:
    return sum(_dropped(batch, tape, finding) for batch in tape.run)


def _behind_watermark(tape: Tape, finding: Json) -> float | None:
    told = [
        batch.event["watermark"] - batch.event["min"]
        for batch in tape.run
        if batch.start >= tape.now - 60 and {"watermark", "min"} <= set(batch.event) and _dropped(batch, tape, finding)
    ]
    return max(told, default=None)


def _jump_batch(tape: Tape, finding: Json) -> Batch | None:
    told = {each["name"]: each["value"] for each in finding["evidence"]}
    return next((batch for batch in reversed(tape.run) if batch.id == told.get("jump_batch_id")), None)


def _jump(tape: Tape, finding: Json) -> float | None:
    read = _jump_batch(tape, finding)
    if read is None:
        return None
    later = [batch for batch in tape.run if batch.id >= read.id and "watermark" in batch.event]
    steps = [b.event["watermark"] - a.event["watermark"] - (b.start - a.start) for a, b in pairwise(later)]
    return max(steps[:3], default=None)


def _ahead(batch: Batch) -> float | None:
    return batch.event["max"] - batch.event["avg"] if {"max", "avg"} <= set(batch.event) else None


def _usually_ahead(tape: Tape, finding: Json) -> float | None:
    read = _jump_batch(tape, finding)
    if read is None:
        return None
    before = [batch for batch in tape.run if batch.id < read.id and batch.rows > 0][-10:]
    return middle(each for batch in before if (each := _ahead(batch)) is not None)


def _watermark_ahead(tape: Tape, finding: Json) -> float | None:
    newest = next((b for b in reversed(tape.run) if "avg" in b.event), None)
    return tape.run[-1].event["watermark"] - min(newest.event["avg"], newest.end) if newest else None


def _newest_time(tape: Tape, finding: Json) -> float | None:
    read = _jump_batch(tape, finding)
    return tape.run[-1].event.get("watermark") if read is None else read.event.get("max")


def _oldest_time(tape: Tape, finding: Json) -> float | None:
    since = [batch for batch in tape.run if batch.start >= tape.now - 60 and _dropped(batch, tape, finding)]
    return min((batch.event["min"] for batch in since if "min" in batch.event), default=None)


def _whole(tape: Tape) -> list[Batch]:
    """All batches of the run, also those that are no longer remembered."""
    return [batch for batch in tape.all if batch.run == tape.run_id]


def _still_since(run: list[Batch]) -> Batch:
    index = len(run) - 1
    while index > 0 and run[index - 1].event.get("watermark") == run[-1].event.get("watermark"):
        index -= 1
    return run[index]


def _usually_still(tape: Tape, finding: Json) -> float | None:
    """The longest time between the first batches of two watermarks, of which the newest is the one that stands."""
    firsts: list[Batch] = []
    for batch in _whole(tape):
        if not firsts or batch.event.get("watermark") != firsts[-1].event.get("watermark"):
            firsts.append(batch)
    known = [batch for batch in firsts if "watermark" in batch.event]
    return max((later.start - earlier.start for earlier, later in pairwise(known)), default=None)


def _rises(tape: Tape) -> list[Batch]:
    """The batches whose newest event time was above all before."""
    found: list[Batch] = []
    for batch in _whole(tape):
        if "max" in batch.event and (not found or batch.event["max"] > found[-1].event["max"]):
            found.append(batch)
    return found


def _clock_since(tape: Tape) -> Batch:
    """The last rise; where even the newest time of all is of January 1970, the first batch with one."""
    rises = _rises(tape)
    return rises[0] if rises[-1].event["max"] < 31 * 86_400 else rises[-1]


def _clock_still(tape: Tape, finding: Json) -> float | None:
    return tape.run[-1].start - _clock_since(tape).start


def _clock_usually_still(tape: Tape, finding: Json) -> float | None:
    return max((later.start - earlier.start for earlier, later in pairwise(_rises(tape))), default=None)


def _advance(tape: Tape) -> float:
    first = next(batch for batch in tape.run if batch.rows and "max" in batch.event)
    return tape.run[-1].event["max"] - first.event["max"]


def _watermark_still(tape: Tape, finding: Json) -> float | None:
    return tape.run[-1].start - _still_since(_whole(tape)).start


def _rows_meanwhile(tape: Tape, finding: Json) -> float | None:
    by_clock = any(each["name"] == "event_time_still_seconds" for each in finding["evidence"])
    first = _clock_since(tape) if by_clock else _still_since(tape.run)
    return float(sum(batch.rows for batch in tape.run if batch.id > max(first.id, tape.run[0].id)))


def _silent_rows(tape: Tape, finding: Json) -> float | None:
    first, name = _still_since(tape.run), str(finding["component"]["name"])
    return float(
        sum(
            source.get("numInputRows", 0)
            for batch in tape.run
            if batch.id > first.id
            for source in batch.raw["sources"]
            if name in source["description"]
        )
    )


def _silent_behind(tape: Tape, finding: Json) -> float | None:
    name = str(finding["component"]["name"])
    newest: dict[str, float] = {}
    for batch in tape.run:
        for key, row in batch.observed.items():
            if key.startswith("ledgerops") and instant(row.get("event_time_max")) > 0:
                newest[key] = instant(row.get("event_time_max"))
    silent = next((at for key, at in newest.items() if key in (name, f"ledgerops_{name}")), None)
    return max(newest.values()) - silent if silent is not None else None


def _watermark_behind(tape: Tape, finding: Json) -> float | None:
    event = newest_of(tape).event
    return event["max"] - event["watermark"] - tape.lateness if {"max", "watermark"} <= set(event) else None


def _apart(tape: Tape, finding: Json) -> float | None:
    newest, topic = tape.all[-1], str(finding["component"]["detail"])
    looked = newest.start + newest.phase("latestOffset")
    read = [tape.now - (tape.lag(place) or 0.0) for place in newest.ended_at_offsets if place[0] == topic]
    return max(min(at, looked) for at in read) - min(min(at, looked) for at in read) if read else None


def _dropped_by_all(tape: Tape, finding: Json) -> float | None:
    return float(
        sum(each.get("numRowsDroppedByWatermark", 0) for batch in _last_minute(tape) for each in batch.operators)
    )


FORMULAS: Mapping[str, Formula] = {
    "rows_dropped_last_minute": _dropped_minute,
    "partitions_apart_seconds": _apart,
    "partition-time-spread: rows_dropped_last_minute": _dropped_by_all,
    "dropped_share": _dropped_share,
    "rows_dropped_since_began": _dropped_ever,
    "oldest_row_behind_watermark_seconds": _behind_watermark,
    "allowed_lateness_seconds": plain(lambda tape: tape.lateness),
    "watermark_jump_seconds": _jump,
    "event_time_max_ahead_seconds": lambda tape, finding: (
        _ahead(batch) if (batch := _jump_batch(tape, finding)) is not None else None
    ),
    "event_time_max_usually_ahead_seconds": _usually_ahead,
    "watermark_ahead_of_rows_seconds": _watermark_ahead,
    "newest_event_time_seconds": _newest_time,
    "watermark-stalled: newest_event_time_seconds": plain(lambda tape: tape.run[-1].event["max"]),
    "event_time_still_seconds": _clock_still,
    "event_time_usually_still_seconds": _clock_usually_still,
    "oldest_event_time_seconds": _oldest_time,
    "jump_batch_id": lambda tape, finding: (
        float(batch.id) if (batch := _jump_batch(tape, finding)) is not None else None
    ),
    "watermark_still_seconds": _watermark_still,
    "event_time_advance_seconds": plain(_advance),
    "watermark_usually_still_seconds": _usually_still,
    "rows_read_meanwhile": _rows_meanwhile,
    "rows_of_the_silent_input": _silent_rows,
    "silent_input_behind_seconds": _silent_behind,
    "watermark_behind_rows_seconds": _watermark_behind,
}
