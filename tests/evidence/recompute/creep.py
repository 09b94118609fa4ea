"""A load that creeps up: what the stretches of ten seconds between batches say."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import NamedTuple

from tests.evidence.recompute.shared import Formula, head
from tests.evidence.tape import Batch, Json, Tape

STRETCH = 10.0  # seconds, ending on multiples of it
PARTS = 5
BEGUN = 3  # batches of a stretch that is not over
CAPS = ("maxoffsetspertrigger", "maxrowspertrigger")


class Part(NamedTuple):
    fullness: float
    arrival: float
    ends: float


def _look(batch: Batch) -> float:
    return batch.start + batch.phase("latestOffset")


def _head_at(tape: Tape, at: float) -> float:
    looks = [(_look(batch), head(batch)) for batch in tape.all if batch.heads]
    before = [look for look in looks if look[0] <= at][-1]
    after = next((look for look in looks if look[0] > at), before)
    share = (at - before[0]) / (after[0] - before[0]) if after[0] > before[0] else 0.0
    return before[1] + share * (after[1] - before[1])


def _parts(tape: Tape, finding: Json) -> list[Part]:
    told = {each["name"]: each["value"] for each in finding["evidence"]}
    by_end: dict[float, list[Batch]] = {}
    for batch in tape.all:
        by_end.setdefault(batch.end - batch.end % STRETCH + STRETCH, []).append(batch)
    ends = sorted(by_end)
    if len(by_end[ends[-1]]) < BEGUN:
        ends.pop()
    size = round(told["window_seconds"] / STRETCH / PARTS)
    ends = ends[-size * PARTS - 1 :]
    parts = []
    for number in range(PARTS):
        stretch = ends[number * size + 1 : (number + 1) * size + 1]
        batches = [batch for end in stretch for batch in by_end[end]]
        seconds, count = sum(batch.seconds for batch in batches), len(batches)
        rows = sum(batch.rows for batch in batches)
        caps = [int(each) for name, each in (tape.plan.get("rate_limits") or {}).items() if name.lower() in CAPS]
        fullness = max(seconds / count / tape.interval, rows / count / min(caps) if caps else 0.0)
        begin, until = ends[number * size], min(stretch[-1], _look(tape.all[-1]))
        arrival = (_head_at(tape, until) - _head_at(tape, begin)) / (until - begin)
        parts.append(Part(fullness, arrival, stretch[-1]))
    return parts


def _fullness_per_minute(tape: Tape, finding: Json) -> float | None:
    parts = _parts(tape, finding)
    return (parts[-1].fullness - parts[0].fullness) / (parts[-1].ends - parts[0].ends) * 60


def _growth(tape: Tape, finding: Json) -> float | None:
    parts = _parts(tape, finding)
    return parts[-1].arrival / parts[0].arrival - 1


def _seconds_to_capacity(tape: Tape, finding: Json) -> float | None:
    """Steps in a loop of a hundredth of a part each, where the rule solves an equation."""
    fulls = [part.fullness for part in _parts(tape, finding)]
    ends = [part.ends for part in _parts(tape, finding)]
    if fulls[-1] >= 1:
        return 0.0
    (before, newest), part = list(pairwise(fulls))[-2:], ends[-1] - ends[-2]
    step, last = newest[1] - newest[0], before[1] - before[0]
    bend = min(0.0, step - last)
    for hundredth in range(20_000):
        n = hundredth / 100
        if fulls[-1] + (step + bend / 2) * n + bend / 2 * n * n >= 1:
            return max(0.0, (n - 0.5) * part)
    return None


FORMULAS: Mapping[str, Formula] = {
    "fullness": lambda tape, finding: _parts(tape, finding)[-1].fullness,
    "fullness_per_minute": _fullness_per_minute,
    "slow-creep: arrival_rows_per_second": lambda tape, finding: _parts(tape, finding)[-1].arrival,
    "arrival_growth": _growth,
    "seconds_to_capacity": _seconds_to_capacity,
    "slow-creep: window_seconds": lambda tape, finding: (
        (parts := _parts(tape, finding))[-1].ends - parts[0].ends + parts[1].ends - parts[0].ends
    ),
}
