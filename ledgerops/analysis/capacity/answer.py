"""What-if questions, answered from a situation: batch time, sustainable rate, backlog, and what limits it.

With overhead a (seconds), b seconds a row, arrival L (rows a second), trigger interval T and cap N (rows a batch):

- batch time t = a + b x n with n = L x T rows, while that is at most T; else batches run back to back and settle at
  t = a / (1 - L x b) with n = L x t rows. n is at most N.
- sustainable rate S = min((T - a) / b, N) / T: batches end within their interval. Where there is none, T is half the
  freshness objective: a row may have to wait for one batch and be in the next.
- utmost rate U = 1 / b, with a cap N / max(T, a + b x N): batches may outlast their interval.
- backlog: while L <= S it is drained in backlog / (S - L) seconds; between S and U batches outlast their interval, but
  no more is left each time; from U on it grows by L - U rows a second.
- breach: while it grows, lag grows by 1 - U / L seconds a second, from the present lag to the freshness objective.

More or fewer cores change the parts of a and b that pass in tasks, as `ledgerops.analysis.capacity.stages` says.
"""

from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

import numpy as np

from ledgerops.analysis.capacity.bottleneck import limit
from ledgerops.analysis.capacity.fit import Fit, Interval, Numbers, utmost_rate
from ledgerops.analysis.capacity.situation import Situation
from ledgerops.analysis.capacity.stages import MAX_CORES_FACTOR, Limit
from ledgerops.common import format

Behaviour = Literal["keeps_up", "outlasts", "grows", "falls_behind", "unknown"]
UNBOUNDED = 1e9  # seconds of a batch, or its rows, where each batch would be longer than the one before


class Question(NamedTuple):
    """What is asked; None leaves it as it is. `load` is a factor of the arrival, or rows a second."""

    load: float | None = None
    rows: float | None = None
    trigger: float | None = None
    cores: int | None = None

    @property
    def text(self) -> str:
        """The question in a few words, such as "load 2x, trigger 10s"; "now" when it changes nothing."""
        parts = []
        if self.load is not None:
            parts.append(f"load {self.load:g}x")
        if self.rows is not None:
            parts.append(f"load {self.rows:,.0f}/s")
        if self.trigger is not None:
            parts.append(f"trigger {self.trigger:g}s")
        if self.cores is not None:
            parts.append(format.counted(self.cores, "core"))
        return ", ".join(parts) or "now"


@dataclass(frozen=True, slots=True)
class CapacityAnswer:
    """None = unknown, for a reason in `unknown_because`."""

    question: Question
    arrival: float | None
    trigger: float | None
    cores: int | None
    rows: float | None = None  # of a batch
    batch: Interval | None = None  # seconds of a typical one
    slow: float | None = None  # seconds that one batch in twenty exceeds
    sustainable: Interval | None = None  # rows a second
    at_least: float | None = None  # rows a second that are sustained, where the rate itself is unknown
    behaviour: Behaviour = "unknown"
    sure: bool = False  # whether the behaviour is the same over the whole interval
    growth: float | None = None  # rows a second by which the backlog grows
    drain: float | None = None  # seconds until the backlog is gone
    breach: float | None = None  # seconds until results are older than the objective; 0 = they are, or will be at once
    limit: Limit | None = None
    unknown_because: tuple[str, ...] = ()

    @property
    def headroom(self) -> float | None:
        """Sustainable rate over arrival; of its lower bound where no more is known and that is above the arrival."""
        if not self.arrival:
            return None
        if self.sustainable is not None:
            return self.sustainable.value / self.arrival
        return self.at_least / self.arrival if self.at_least is not None and self.at_least >= self.arrival else None


def answer(known: Situation, question: Question) -> CapacityAnswer:
    """The answer to one question. What the data do not support is None, with the reason. Of a query that is harmed now
    it says so, whatever the line through its batches says."""
    found = _estimated(known, question)
    if known.harm is None or question.text != "now" or found.behaviour not in ("keeps_up", "unknown"):
        return found
    reasons = list(found.unknown_because)
    if found.behaviour == "keeps_up":
        reasons.append("by its batches it would keep up; `ledgerops diagnose` says why not")
    behaviour: Behaviour = "outlasts" if known.harm.kind == "overrun" else "falls_behind"
    return replace(found, behaviour=behaviour, sure=True, drain=None, unknown_because=tuple(reasons))


def _estimated(known: Situation, question: Question) -> CapacityAnswer:
    arrival = known.arrival
    if question.rows is not None:
        arrival = question.rows
    elif question.load is not None and arrival is not None:
        arrival *= question.load
    trigger = known.trigger if question.trigger is None else question.trigger
    now = known.stages.cores if known.stages else None
    cores = question.cores or now
    partial = CapacityAnswer(question, arrival, trigger, cores)
    if known.fit is None:
        carried = known.shown if question.trigger is None and question.cores is None else None
        keeps: Behaviour = "keeps_up" if carried and not known.backlog and question.text == "now" else "unknown"
        reason = (f"capacity unknown: {known.reason}",)
        return replace(
            partial, at_least=carried, behaviour=keeps, unknown_because=reason, limit=limit(known, cores, None, None)
        )
    scaled = _scaled(known, question.cores)
    if isinstance(scaled, str):
        return replace(partial, unknown_because=(scaled,))
    return _carry(known, partial, scaled)


def _scaled(known: Situation, cores: int | None) -> Fit | str:
    """The line with `cores` cores, or the reason why it is unknown."""
    assert known.fit is not None
    if cores is None:
        return known.fit
    stages = known.stages
    if stages is None:
        return "effect of other core counts unknown: tasks were recorded for too few batches"
    if stages.cores is None:
        return "effect of other core counts unknown: the current number of cores is not known"
    if cores == stages.cores:
        return known.fit
    if cores > MAX_CORES_FACTOR * stages.cores:
        return (
            f"effect of {cores} cores unknown: estimates go up to {MAX_CORES_FACTOR:g} times the current "
            f"{stages.cores}, because the measurements do not show how more cores share memory, disk and network"
        )
    factor = stages.factor(cores)
    of_overhead = 1 - stages.of_overhead * (1 - factor)
    of_slope = 1 - stages.of_slope * (1 - factor)
    line = known.fit
    return replace(
        line, overhead=line.overhead * of_overhead, slope=line.slope * of_slope, overheads=line.overheads * of_overhead,
        slopes=line.slopes * of_slope,
    )  # fmt: skip


def _carry(known: Situation, partial: CapacityAnswer, line: Fit) -> CapacityAnswer:
    """`partial` with what the query can carry by the line: rates, batch time, behaviour and limit."""
    known = replace(known, trigger=partial.trigger)  # what limits the query at the interval that is asked about
    cap, interval = known.cap[1] if known.cap else None, partial.trigger or 0.0
    partial, reasons = _with_sustainable_rate(known, partial, line, cap)
    if partial.arrival is None:
        reasons.append(
            "behaviour under load unknown: no arrival rate is known; give it with --load, in rows per second"
        )
        return replace(partial, unknown_because=tuple(reasons), limit=limit(known, partial.cores, None, line))
    arrival = partial.arrival
    utmost = line.estimate(lambda a, b: utmost_rate(a, b, interval, cap))
    batch = line.estimate(lambda a, b: _batch_seconds(a, b, arrival, interval, cap))
    rows = _rows(batch.value, arrival, interval, cap)
    if cap is None and arrival >= utmost.value:
        reasons.append("batch time unknown: each batch would take longer than the one before")
    elif line.reach(rows) > line.trusted:
        reasons.append(_too_far("batch time", rows, line))
    else:
        partial = replace(partial, rows=rows, batch=batch, slow=batch.value * line.slow)
    behaviour, sure = _behaviour(partial, arrival, utmost)
    partial = replace(partial, behaviour=behaviour, sure=sure, unknown_because=tuple(reasons))
    partial = replace(partial, **_times(known, partial, utmost.value))
    return replace(partial, limit=limit(known, partial.cores, rows if rows < UNBOUNDED else None, line))


def _with_sustainable_rate(
    known: Situation, partial: CapacityAnswer, line: Fit, cap: float | None
) -> tuple[CapacityAnswer, list[str]]:
    """`partial` with the sustainable rate, or with its lower bound or without it for a reason."""
    if partial.trigger is None:
        return partial, ["sustainable rate unknown: the trigger interval is not known; give it with --trigger"]
    span = partial.trigger or known.freshness / 2
    rate = line.estimate(lambda a, b: _sustainable(a, b, span, cap))
    size = rate.value * span
    if line.reach(size) <= line.trusted:
        return replace(partial, sustainable=rate), []
    at_least = line.trusted * line.largest / span
    return replace(partial, at_least=at_least), [_too_far("sustainable rate", size, line)]


def _behaviour(partial: CapacityAnswer, arrival: float, utmost: Interval) -> tuple[Behaviour, bool]:
    """What the query does at this arrival rate, and whether that holds over the whole interval of the estimates."""
    sustainable = partial.sustainable
    if sustainable is None and partial.at_least is not None:
        return ("keeps_up", True) if arrival <= partial.at_least else ("unknown", False)
    if arrival >= utmost.value:
        return "grows", arrival >= utmost.high
    if sustainable is not None and arrival <= sustainable.value:
        return "keeps_up", arrival <= sustainable.low
    if sustainable is not None and partial.batch is not None:
        return "outlasts", sustainable.high < arrival < utmost.low
    return "unknown", False


def _times(known: Situation, partial: CapacityAnswer, utmost: float) -> dict[str, Any]:
    """What happens to the backlog, and when the freshness objective is missed."""
    assert partial.arrival is not None
    best = partial.sustainable.value if partial.sustainable else partial.at_least
    match partial.behaviour:
        case "keeps_up" if best is not None and known.backlog is not None:
            spare = best - partial.arrival
            return {"drain": known.backlog / spare if spare > 0 else (0.0 if not known.backlog else None)}
        case "outlasts" if partial.batch is not None and 2 * partial.batch.value > known.freshness:
            return {"breach": 0.0}  # a row waits for one batch and is in the next
        case "grows":
            rising = 1 - utmost / partial.arrival
            left = max(0.0, known.freshness - (known.lag or 0.0))
            return {"growth": partial.arrival - utmost, "breach": left / rising if rising > 0 else None}
    return {}


def _too_far(what: str, rows: float, line: Fit) -> str:
    return (
        f"{what} unknown: it needs batches of {rows:,.0f} rows, {line.reach(rows):.1f} times the largest observed "
        f"({line.largest:,} rows), and estimates are limited to {line.trusted:g} times"
    )


def _sustainable(overhead: Numbers, slope: Numbers, span: float, cap: float | None) -> Numbers:
    rows = np.maximum(0.0, (span - overhead) / slope)
    return (rows if cap is None else np.minimum(rows, cap)) / span


def _batch_seconds(overhead: Numbers, slope: Numbers, arrival: float, interval: float, cap: float | None) -> Numbers:
    within = overhead + slope * arrival * interval
    left = 1 - arrival * slope
    back_to_back = np.where(left > 0, overhead / np.where(left > 0, left, 1.0), UNBOUNDED)
    seconds = np.where((interval > 0) & (within <= interval), within, back_to_back)
    return seconds if cap is None else np.minimum(seconds, overhead + slope * cap)


def _rows(batch: float, arrival: float, interval: float, cap: float | None) -> float:
    rows = arrival * max(interval, batch)
    return rows if cap is None else min(rows, cap)
