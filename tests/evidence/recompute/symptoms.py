"""Lateness, failures, stuck and long batches."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise

from tests.evidence.recompute.shared import Formula, backlog, falling_delay, nearest, newest_of, plain
from tests.evidence.tape import Json, Tape, middle

# seconds: the bounds of latency_le_0 and so on
AGES = (0.25, 0.5, 1.0, 2.0, 3.0, 5.0, 7.5, 10.0, 15.0, 30.0, 60.0, 120.0, 300.0, 900.0, 3600.0)


def _running(tape: Tape, finding: Json) -> float | None:
    return tape.now - tape.running[1]["since"] if tape.running else None


def _batch_seconds(tape: Tape, finding: Json) -> float | None:
    running = _running(tape, finding)
    found = [newest_of(tape).seconds, *([] if running is None else [running])]
    return nearest(found, finding, "batch_seconds")


def _result_delay(tape: Tape, finding: Json) -> float | None:
    run = tape.run

    def since(place: int, began: float) -> float:
        late = began > run[place].end + tape.interval + 0.06
        asked = run[place].start + run[place].phase("latestOffset")
        return max(asked, began - tape.interval) if late else asked

    if tape.running is not None and run:
        return tape.now - since(-1, float(tape.running[1]["since"]))
    if len(run) < 3:
        return None
    return min(run[-1].end - since(-2, run[-1].start), run[-2].end - since(-3, run[-2].start))


def _event_latency(tape: Tape, finding: Json) -> float | None:
    told = []
    for batch in tape.run[-3:]:
        rows = [row for name, row in batch.observed.items() if name.startswith("ledgerops") and row.get("rows")]
        under = [sum(row[f"latency_le_{bound}"] for row in rows) for bound in range(len(AGES))] if rows else []
        half = sum(row[f"latency_le_{len(AGES)}"] for row in rows) / 2
        place = next((n for n, count in enumerate(under) if count >= half), None)
        if half and place is None:
            told.append(AGES[-1])
        elif half and place is not None:
            points = [(0, 0.0), *zip(under, AGES, strict=True)][place : place + 2]
            (below, low), (above, high) = points
            told.append(low + (high - low) * (half - below) / (above - below))
    return middle(told)


def _watermark_lag(tape: Tape, finding: Json) -> float | None:
    newest = newest_of(tape)
    return newest.end - newest.event["watermark"] - tape.lateness if "watermark" in newest.event else None


def _failed_batch(tape: Tape, finding: Json) -> float | None:
    known = [batch.id for batch in tape.all[: tape.failures[-1][1]]] if tape.failures else []
    return float(max(known) + 1) if known else 0.0


def _failed_batch_ever(tape: Tape, finding: Json) -> float | None:
    return float(max(batch.id for batch in tape.all) + 1) if tape.all else None


def _window_failures(tape: Tape) -> list[tuple[float, int]]:
    return [each for each in tape.failures if each[0] >= tape.failures[-1][0] - 900]


def _failures_in_batch(tape: Tape, finding: Json) -> float | None:
    def batch(heard: int) -> int:
        return max((each.id for each in tape.all[:heard]), default=-1) + 1

    last = batch(tape.failures[-1][1])
    return float(sum(batch(heard) == last for _, heard in _window_failures(tape)))


def _restarts(tape: Tape, finding: Json) -> float | None:
    runs = [run for _, run in tape.starts]
    return float(sum(later != earlier for earlier, later in pairwise(runs)))


def _last_seen(tape: Tape, finding: Json) -> float | None:
    return tape.now - max([batch.end for batch in tape.all[-1:]] + [at for at, _ in tape.starts] + tape.idles)


def _without_a_sign(tape: Tape, finding: Json) -> float | None:
    newest = tape.run[-1].end if tape.run else next((at for at, run in reversed(tape.starts)), None)
    return tape.ends[-1][0] - newest if tape.ends and newest is not None else None


FORMULAS: Mapping[str, Formula] = {
    "seconds_without_a_sign": _without_a_sign,
    "ledgerops_source_backlog_offsets": plain(lambda tape: float(backlog(newest_of(tape)))),
    "ledgerops_source_lag_seconds": plain(Tape.lag),
    "falling-behind: batch_seconds": _batch_seconds,
    "falling-behind: result_delay_seconds": falling_delay,
    "freshness-breach: result_delay_seconds": _result_delay,
    "event_latency_seconds": _event_latency,
    "watermark_lag_seconds": _watermark_lag,
    "freshness_objective_seconds": plain(lambda tape: 60.0 + 2 * tape.interval),
    "ledgerops_batch_running_seconds": _running,
    "ledgerops_query_failures_total": plain(lambda tape: float(len(tape.failures))),
    "failed_batch_id": _failed_batch_ever,
    "crash-loop: failed_batch_id": _failed_batch,
    "failures_in_window": plain(lambda tape: float(len(_window_failures(tape)))),
    "failures_in_that_batch": _failures_in_batch,
    "ledgerops_query_restarts_total": _restarts,
    "seconds_since_last_seen": _last_seen,
    "ledgerops_trigger_interval_seconds": plain(lambda tape: tape.interval),
    "ledgerops_last_batch_duration_seconds": plain(lambda tape: newest_of(tape).seconds),
}
