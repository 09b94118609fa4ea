"""Numbers that a query's own batches tell: delays, loads, event time, state and books."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from statistics import median

from tests.evidence.recompute.profile import idle_share
from tests.evidence.tape import Batch, Formula, Given, Json, OfBatch, Tape, total_of

DAY = 86_400.0
STRETCH = 10.0  # seconds of a trend, ending on multiples of it
OF_STALLS = (
    "slow_batches", "usual_batch_seconds", "slow_batch_excess_seconds", "slow_batch_spacing_seconds",
    "waiting_share_of_excess", "saving_seconds",
)  # fmt: skip
OF_CREEP = ("fullness", "fullness_per_minute", "arrival_rows_per_second", "arrival_growth", "seconds_to_capacity")


# -- delays and loads


def _delays(tape: Tape) -> Iterator[float]:
    """From when a batch asked for its offsets to the next one's end, or now."""
    newest = tape.run[-3:]
    yield from (batch.end - before.asked for before, batch in pairwise(newest))
    yield from (tape.now - batch.asked for batch in newest[-2:])


def _falls_by(tape: Tape) -> Iterator[float]:
    """Since each earlier batch, in a second."""
    newest = tape.newest
    return ((b.backlog - newest.backlog) / (newest.end - b.end) for b in tape.run[:-1] if b.heads)


def _arrival(tape: Tape) -> float:
    """Over three batches."""
    latest = tape.run[-3:]
    seconds = latest[-1].asked - latest[0].asked
    return (latest[-1].head - latest[0].head) / seconds


def _processed(tape: Tape) -> float:
    latest = tape.run[-3:]
    return sum(batch.rows for batch in latest) / sum(max(batch.seconds, tape.interval) for batch in latest)


def _breach(tape: Tape) -> Given:
    lag = tape.told.get("result_delay_seconds", tape.told.get("ledgerops_source_lag_seconds", 0.0))
    return max(0.0, 60.0 - lag) / (1 - 1 / tape.told["arrival_ratio"])


def _away(tape: Tape) -> float:
    before = [at for at, run in tape.ends if run != tape.run_id]
    return next(at for at, run in tape.starts if run == tape.run_id) - before[-1]


def _owed(tape: Tape) -> tuple[float, Sequence[float]]:
    """The share that is owed from a late batch on, and the seconds of the late ones: of what proves it the longest that
    owes nearly as much as any."""
    count = max(5, sum(batch.end >= tape.now - 120 for batch in tape.whole[1:]))
    newest = tape.whole[1:][-count:]
    interval, running, until = tape.interval, tape.running_seconds, [*(b.start for b in newest[1:]), float("inf")]
    turns = [(b.seconds, min(end - b.start, max(b.seconds, interval))) for b, end in zip(newest, until, strict=True)]
    turns += [(running, running)] if running and running > 1.05 * interval else []
    settled, found = len(newest) - len([batch for batch in newest if batch in tape.steady]), []
    for place in (n for n, (seconds, _) in enumerate(turns) if seconds > 1.05 * interval):
        span, late = sum(taken for _, taken in turns[place:]), [s for s, _ in turns[place:] if s > 1.05 * interval]
        share = max(0.0, 1 - interval * (len(turns) - place) / span)
        if (len(late) > 2 and share >= 0.2 and span >= 60 and place >= settled) or (
            share >= (0.67 if len(late) > 1 else 0.9) and span >= 40
        ):
            found.append((share, late))
    return next(row for row in found if row[0] >= 0.7 * max(share for share, _ in found))


def _stalls(tape: Tape) -> Iterator[Mapping[str, float]]:
    """The newest batches: how many are slow, how long, and how far apart."""
    window = [batch for batch in tape.steady if batch.start >= tape.now - max(120, 30 * tape.interval)][-60:]
    usual = median(batch.seconds for batch in window)
    slow = [batch for batch in window if batch.seconds > 3 * usual]
    firsts = [batch for before, batch in pairwise([None, *window]) if batch in slow and before not in slow]
    yield {
        "slow_batches": float(len(slow)),
        "usual_batch_seconds": usual,
        "slow_batch_excess_seconds": median(each.seconds for each in slow) - usual,
        "slow_batch_spacing_seconds": median(b.start - a.start for a, b in pairwise(firsts)),
        "waiting_share_of_excess": idle_share(tape, slow, usual),
        "saving_seconds": sum(each.seconds - usual for each in slow) / len(window),
    }


def _number(found: Callable[[Tape], Iterable[Mapping[str, float]]], name: str) -> Formula:
    """One of the numbers that are found together, for each choice of batches."""
    return lambda tape: (numbers[name] for numbers in found(tape))


# -- a load that creeps up


def _creep(tape: Tape) -> Iterator[Mapping[str, float]]:
    """By the five parts of a window that begin and end on multiples of ten seconds; the newest may not be over yet."""
    size = round(tape.told["window_seconds"] / STRETCH / 5)
    known = sorted({batch.end - batch.end % STRETCH + STRETCH for batch in tape.all})
    for ends in (known, known[:-1]):
        edges, fulls, rates = ends[-5 * size - 1 :: size], [], []
        for begin, end in pairwise(edges):
            own = [batch.seconds for batch in tape.all if begin <= batch.end < end]
            fulls.append(sum(own) / len(own) / tape.interval)
            until = min(end, tape.newest.asked)
            rates.append((_head_at(tape, until) - _head_at(tape, begin)) / (until - begin))
        parts_left = (1 - fulls[-1]) / (fulls[-1] - fulls[-2])
        yield {
            "fullness": fulls[-1],
            "fullness_per_minute": (fulls[-1] - fulls[0]) / (edges[-1] - edges[1]) * 60,
            "arrival_rows_per_second": rates[-1],
            "arrival_growth": rates[-1] / rates[0] - 1,
            "seconds_to_capacity": max(0.0, (parts_left - 0.5) * (edges[-1] - edges[-2])),
        }


def _head_at(tape: Tape, at: float) -> float:
    looks = [(batch.asked, batch.head) for batch in tape.all if batch.heads]
    before = [look for look in looks if look[0] <= at][-1]
    after = next((look for look in looks if look[0] > at), before)
    share = (at - before[0]) / (after[0] - before[0]) if after[0] > before[0] else 0.0
    return before[1] + share * (after[1] - before[1])


# -- ends and failures


def _in_window(tape: Tape) -> list[float]:
    """The batch in which each failure happened."""
    return [tape.all[heard - 1].id + 1 if heard else 0 for heard in tape.failures]


# -- event time


def _dropped(batch: Batch) -> float:
    return total_of(batch.operators, "numRowsDroppedByWatermark")


def _dropped_minute(tape: Tape) -> float:
    return sum(map(_dropped, tape.since(60)))


def _oldest_dropped(tape: Tape) -> float:
    """How far the oldest row was behind the watermark, in the batches of the last minute that dropped rows."""
    dropping = [batch for batch in tape.run if batch.start >= tape.now - 60 and _dropped(batch)]
    return max(batch.event.get("watermark", 0.0) - batch.event["min"] for batch in dropping)


def _jump(tape: Tape) -> Batch:
    return next(batch for batch in reversed(tape.run) if batch.id == tape.told["jump_batch_id"])


def _jumped(tape: Tape) -> Iterator[float]:
    """By how much the watermark outran the clock in the batches after the one that read the row."""
    later = [batch for batch in tape.run if batch.id >= _jump(tape).id and "watermark" in batch.event][:4]
    return (b.event["watermark"] - a.event["watermark"] - (b.start - a.start) for a, b in pairwise(later))


def _ahead(batch: Batch) -> float:
    return batch.event["max"] - batch.event["avg"]


def _usually_ahead(tape: Tape) -> float:
    before = [batch for batch in tape.run if batch.id < _jump(tape).id and batch.rows][-10:]
    return median(_ahead(batch) for batch in before if {"max", "avg"} <= set(batch.event))


def _moves(tape: Tape, key: str) -> list[Batch]:
    """The batches in which a time rose above all before, the first one with it included."""
    found: list[Batch] = []
    for batch in tape.whole:
        if key in batch.event and (not found or batch.event[key] > found[-1].event[key]):
            found.append(batch)
    return found


def _rows_meanwhile(tape: Tape) -> Iterator[float]:
    """After the batch in which the watermark last moved, or in which the remembered run begins."""
    known = [*_moves(tape, "watermark")[-1:], tape.run[0]]
    return (float(sum(b.rows for b in tape.run if b.id > max(first.id, tape.run[0].id))) for first in known)


def _silent_rows(tape: Tape) -> float:
    since = _moves(tape, "watermark")[-1].id
    sources = [each for batch in tape.run if batch.id > since for each in batch.raw["sources"]]
    return total_of((each for each in sources if tape.name in each["description"]), "numInputRows")


# -- state


def _operator(tape: Tape, batch: Batch) -> Json:
    """The operator that the finding names."""
    return next(each for each in batch.operators if each["operatorName"] == tape.name.partition("-")[0])


def _state(key: str) -> Callable[[Tape], OfBatch]:
    return lambda tape: lambda batch: float(_operator(tape, batch)[key])


ROWS, MEMORY = _state("numRowsTotal"), _state("memoryUsedBytes")


def _span(tape: Tape) -> list[Batch]:
    """From the newest of three batches in a row on that left no rows, if there are such: before it was no growth."""
    steady, rows, still = tape.steady, ROWS(tape), 0
    for place in range(len(steady) - 1, 0, -1):
        left = rows(steady[place]) - rows(steady[place - 1]) < 0.05 * steady[place].rows
        still = still + 1 if left else 0 if steady[place].rows else still
        if still == 3:
            return steady[place + 2 :]
    return steady


def _change(of: Callable[[Tape], OfBatch], seconds: float = 1.0) -> Formula:
    """By which the state grew, in so many seconds."""
    return lambda tape: (
        (of(tape)(batches[-1]) - of(tape)(batches[0])) / (batches[-1].end - batches[0].end) * seconds
        for batches in [_span(tape)]
    )


def _kept(tape: Tape) -> float:
    rows, span = ROWS(tape), _span(tape)
    return (rows(span[-1]) - rows(span[0])) / sum(batch.rows for batch in span[1:])


def _room(tape: Tape) -> list[float]:
    used = total_of(tape.newest.operators, "memoryUsedBytes")
    return [max(0.0, tape.heap - used), float(tape.hosts[-1]["memory_available_bytes"])]


def _storm(tape: Tape) -> Batch:
    """The newest of the latest three that removed as many rows as the finding tells."""
    told = tape.told["state_rows_removed"]
    return next(b for b in reversed(tape.run[-3:]) if _operator(tape, b).get("numRowsRemoved") == told)


def _removal_wall(tape: Tape) -> float:
    return float(_operator(tape, _storm(tape))["allRemovalsTimeMs"]) / 1000 / tape.cores


def _uploaded(tape: Tape) -> int:
    custom = _operator(tape, tape.newest).get("customMetrics", {})
    versions = [int(value) for key, value in custom.items() if key.startswith("SnapshotLastUploaded.partition_")]
    return max(min(versions), tape.whole[0].id)


def _snapshot_age(tape: Tape) -> float:
    made = next((batch.end for batch in tape.run if batch.id == _uploaded(tape) - 1), tape.run[0].start)
    return tape.newest.end - made


# -- books


def _latest(tape: Tape) -> list[Batch]:
    return tape.since(120)


def _booked(batch: Batch, side: str, key: str) -> float:
    rows = [row for name, row in batch.observed.items() if name.startswith(f"ledgerops_book_{side}")]
    return sum(float(row.get(key) or 0) for row in rows)


def _missing(batch: Batch, key: str) -> float:
    return _booked(batch, "in", key) - _booked(batch, "out", key)


def _unbalanced(tape: Tape) -> list[Batch]:
    return [batch for batch in _latest(tape) if _missing(batch, "rows") or _missing(batch, "amount")]


def _conflicts(batch: Batch) -> float:
    return float(sum(row.get("conflicts") or 0 for name, row in batch.observed.items() if "_conflicts" in name))


def _sum(of: OfBatch, over: Callable[[Tape], Iterable[Batch]]) -> Formula:
    return lambda tape: float(sum(of(batch) for batch in over(tape)))


FORMULAS: Mapping[str, Formula] = {
    # delays and loads
    "ledgerops_source_backlog_offsets": lambda tape: tape.newest.backlog,
    "backlog_offsets": lambda tape: tape.newest.backlog,
    "backlog_falls_by": _falls_by,
    "ledgerops_backlog_drain_seconds": lambda tape: tape.newest.backlog / tape.told["backlog_falls_by"],
    "ledgerops_source_lag_seconds": Tape.lag,
    "batch_seconds": lambda tape: [tape.newest.seconds, tape.running_seconds or tape.newest.seconds],
    "result_delay_seconds": _delays,
    "arrival_rows_per_second": _arrival,
    "processed_rows_per_second": _processed,
    "arrival_ratio": lambda tape: _arrival(tape) / _processed(tape),
    "seconds_to_breach": _breach,
    "away_seconds": _away,
    "ledgerops_trigger_interval_seconds": lambda tape: tape.interval,
    "ledgerops_last_batch_duration_seconds": lambda tape: tape.newest.seconds,
    "owed_share": lambda tape: _owed(tape)[0],
    "trigger-overrun: batch_seconds_median": lambda tape: median(_owed(tape)[1]),
    "rate-limited: batch_seconds_median": lambda tape: median(batch.seconds for batch in tape.steady[-5:]),
    "query-stuck: batch_seconds_median": lambda tape: median(batch.seconds for batch in tape.whole[1:][-200:]),
    **{f"intermittent-sink: {name}": _number(_stalls, name) for name in OF_STALLS},
    **{f"slow-creep: {name}": _number(_creep, name) for name in OF_CREEP},
    "slow-creep: window_seconds": lambda tape: [50.0, 300.0, 1800.0],
    # ends and failures
    "ledgerops_batch_running_seconds": lambda tape: tape.now - tape.running["since"] if tape.running else None,
    "ledgerops_query_failures_total": lambda tape: float(len(tape.failures)),
    "failed_batch_id": lambda tape: float(tape.all[-1].id + 1),
    "crash-loop: failed_batch_id": lambda tape: float(_in_window(tape)[-1]),
    "failures_in_window": lambda tape: float(len(_in_window(tape))),
    "failures_in_that_batch": lambda tape: float(_in_window(tape).count(_in_window(tape)[-1])),
    "ledgerops_query_restarts_total": lambda tape: float(sum(b[1] != a[1] for a, b in pairwise(tape.starts))),
    # event time
    "allowed_lateness_seconds": lambda tape: tape.lateness,
    "rows_dropped_last_minute": _dropped_minute,
    "dropped_share": lambda tape: min(1.0, _dropped_minute(tape) / sum(batch.rows for batch in tape.since(60))),
    "rows_dropped_since_began": lambda tape: sum(map(_dropped, tape.run)),
    "oldest_row_behind_watermark_seconds": _oldest_dropped,
    "jump_batch_id": lambda tape: float(_jump(tape).id),
    "watermark_jump_seconds": _jumped,
    "event_time_max_ahead_seconds": lambda tape: _ahead(_jump(tape)),
    "event_time_max_usually_ahead_seconds": _usually_ahead,
    "watermark_ahead_of_rows_seconds": lambda tape: next(
        tape.run[-1].event["watermark"] - batch.event["avg"] for batch in reversed(tape.run) if "avg" in batch.event
    ),
    "watermark_ahead_of_clock_seconds": lambda tape: tape.run[-1].event["watermark"] - tape.run[-1].end,
    "event_time_ahead_of_clock_seconds": lambda tape: next(
        batch.event["max"] - batch.end
        for batch in reversed(tape.run)
        if batch.event.get("max", 0.0) >= tape.run[-1].event["watermark"]
    ),
    "watermark_still_seconds": lambda tape: (  # since it last moved, or since the run began without it
        tape.run[-1].start - batch.start for batch in [*_moves(tape, "watermark")[-1:], *tape.run[:1]]
    ),
    "watermark_usually_still_seconds": lambda tape: max(
        later.start - batch.start for batch, later in pairwise(_moves(tape, "watermark"))
    ),
    "rows_read_meanwhile": _rows_meanwhile,
    "rows_of_the_silent_input": _silent_rows,
    "watermark_behind_rows_seconds": lambda tape: (
        tape.newest.event["max"] - tape.newest.event["watermark"] - tape.lateness
    ),
    # state
    "ledgerops_state_rows": lambda tape: ROWS(tape)(tape.newest),
    "state_rows_growth_per_second": _change(ROWS),
    "unbounded-state: state_rows_removed": lambda tape: sum(map(_state("numRowsRemoved")(tape), _span(tape))),
    "state_rows_kept_per_row_read": _kept,
    "state_bytes_in_a_day": _change(MEMORY, seconds=DAY),
    "state_bytes": lambda tape: MEMORY(tape)(tape.newest),
    "state_bytes_growth_per_second": _change(MEMORY),
    "room_bytes": _room,
    "seconds_to_limit": lambda tape: tape.told["room_bytes"] / tape.told["state_bytes_growth_per_second"],
    "eviction-storm: state_rows_removed": lambda tape: _state("numRowsRemoved")(tape)(_storm(tape)),
    "usual_state_rows_removed": lambda tape: median(
        _operator(tape, batch).get("numRowsRemoved", 0) for batch in tape.steady if batch.id != _storm(tape).id
    ),
    "state_removal_wall_seconds": _removal_wall,
    "eviction-storm: saving_seconds": _removal_wall,
    "eviction-storm: batch_seconds": lambda tape: _storm(tape).seconds,
    "state_snapshot_lag_batches": lambda tape: float(tape.newest.id + 1 - _uploaded(tape)),
    "state_snapshot_age_seconds": _snapshot_age,
    # books
    "unbalanced_batches": lambda tape: float(len(_unbalanced(tape))),
    "missing_rows": _sum(lambda batch: _missing(batch, "rows"), _unbalanced),
    "missing_amount": _sum(lambda batch: _missing(batch, "amount"), _unbalanced),
    "rows_booked": _sum(lambda batch: _booked(batch, "in", "rows"), _latest),
    "conflicting_rows": _sum(_conflicts, _latest),
    "conflicting_share": lambda tape: sum(map(_conflicts, _latest(tape))) / sum(batch.rows for batch in _latest(tape)),
    "conflicting_batches": _sum(lambda batch: float(_conflicts(batch) > 0), _latest),
}  # fmt: skip
