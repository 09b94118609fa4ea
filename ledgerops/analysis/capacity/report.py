"""Answers as a document (JSON) and as text: a line on the fit, a table of the questions, and a plot of the batches."""

from collections.abc import Sequence
from typing import Any

from ledgerops.analysis.capacity.answer import UNBOUNDED, CapacityAnswer
from ledgerops.analysis.capacity.fit import CONFIDENCE_LEVEL, Fit, Interval
from ledgerops.analysis.capacity.plot import plot
from ledgerops.analysis.capacity.situation import Situation
from ledgerops.analysis.capacity.stages import Limit
from ledgerops.common import format
from ledgerops.common.format import clean
from ledgerops.model.spark_progress import format_instant

VERSION = 1
DIGITS = 6
MIN_DRAIN_SECONDS = 1.0  # a shorter time to clear the backlog is not shown
HEADS = ("question", "rows/s", "batch", "sustainable rows/s", "headroom", "backlog", "limited by")
Answered = tuple[Situation, Sequence[CapacityAnswer]]


def document(answered: Sequence[Answered], at: float, source: str) -> dict[str, Any]:
    """Plain JSON types; what is unknown is null, with the reasons in `cannot_tell`."""
    return {
        "version": VERSION, "at": format_instant(at), "source": source, "interval": CONFIDENCE_LEVEL,
        "queries": [_query(known, answers) for known, answers in answered],
    }  # fmt: skip


def _query(known: Situation, answers: Sequence[CapacityAnswer]) -> dict[str, Any]:
    line = known.fit
    return {
        "query": known.query, "trigger_interval_seconds": _rounded(known.trigger),
        "arrival_rows_per_second": _rounded(known.arrival), "backlog_rows": _rounded(known.backlog),
        "lag_seconds": _rounded(known.lag), "freshness_objective_seconds": known.freshness,
        "cores": known.stages.cores if known.stages else None, "fit": None if line is None else _fit(line),
        "reason": known.reason or None, "notes": list(known.notes), "answers": [_answer(each) for each in answers],
    }  # fmt: skip


def _fit(line: Fit) -> dict[str, Any]:
    return {
        "overhead_seconds": _estimate(line.estimate(lambda a, b: a)),
        "rows_per_second": _estimate(line.estimate(lambda a, b: 1 / b)), "batches": len(line.rows),
        "smallest_batch_rows": min(line.rows), "largest_batch_rows": line.largest, "source": line.source,
        "points": [
            {"rows": rows, "seconds": round(seconds, DIGITS)}
            for rows, seconds in zip(line.rows, line.seconds, strict=True)
        ],
    }  # fmt: skip


def _answer(each: CapacityAnswer) -> dict[str, Any]:
    asked = each.question
    return {
        "question": asked.text, "load_factor": asked.load, "arrival_rows_per_second": _rounded(each.arrival),
        "trigger_interval_seconds": _rounded(each.trigger), "cores": each.cores, "batch_rows": _rounded(each.rows),
        "batch_seconds": _estimate(each.batch), "slow_batch_seconds": _rounded(each.slow),
        "sustainable_rows_per_second": _estimate(each.sustainable),
        "sustainable_at_least_rows_per_second": _rounded(each.at_least),
        "headroom_ratio": _rounded(each.headroom),
        "backlog": {
            "behaviour": each.behaviour, "sure": each.sure, "growth_rows_per_second": _rounded(each.growth),
            "drain_seconds": _rounded(each.drain), "breach_seconds": _rounded(each.breach),
        },
        "limited_by": None if each.limit is None else {"what": each.limit.what, "detail": each.limit.detail},
        "cannot_tell": list(each.unknown_because),
    }  # fmt: skip


def _estimate(found: Interval | None) -> dict[str, float | None] | None:
    if found is None:
        return None
    ends = zip(("value", "low", "high"), found, strict=True)
    return {name: round(value, DIGITS) if value < UNBOUNDED else None for name, value in ends}


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, DIGITS)


def text(answered: Sequence[Answered], at: float) -> str:
    """One block a query."""
    blocks = [_block(known, answers, at) for known, answers in answered]
    return "\n\n".join("\n".join(line.rstrip() for line in block) for block in blocks) + "\n"


def _block(known: Situation, answers: Sequence[CapacityAnswer], at: float) -> list[str]:
    known_facts = [
        None if known.trigger is None else f"trigger {known.trigger:g} s" if known.trigger else "batches back to back",
        None if not known.stages or not known.stages.cores else format.counted(known.stages.cores, "core"),
        None if known.arrival is None else f"arrival {format.count(known.arrival)} rows/s",
        None if not known.backlog else f"backlog {format.count(known.backlog)} rows",
        None if known.cap is None else f"{known.cap[0]} {known.cap[1]:,.0f} rows",
    ]
    facts = ", ".join(fact for fact in known_facts if fact)
    lines = [f"{clean(known.query)}  at {format.instant(format_instant(at))}", f"  {facts}"]
    line = known.fit
    if line is not None:
        overhead, rate = line.estimate(lambda a, b: a), line.estimate(lambda a, b: 1 / b)
        lines += [
            f"  batch time = {_range(overhead, _seconds)} + rows / {_range(rate, format.count)} rows/s",
            f"  {len(line.rows)} batches of {min(line.rows):,} to {line.largest:,} rows; {line.source}",
            "",
            *(f"  {each}" for each in plot(line, known.trigger)),
        ]
    rows = [_row(each) for each in answers]
    widths = [max(len(row[column]) for row in (HEADS, *rows)) for column in range(len(HEADS))]
    lines.append("")
    lines += ["  " + "  ".join(map(str.ljust, row, widths)) for row in (HEADS, *rows)]
    said = [
        *((_limited(each.limit), each) for each in answers if each.limit),
        *((reason, each) for each in answers for reason in each.unknown_because),
    ]
    lines.append("")
    for sentence in dict.fromkeys(sentence for sentence, _ in said):
        asked = "; ".join(each.question.text for other, each in said if other == sentence)
        lines.append(f"  {asked}: {sentence}")
    return lines + [f"  note: {note}" for note in known.notes]


def _limited(found: Limit) -> str:
    what = "limit unknown" if found.what == "unknown" else f"limited by {found.name}"
    return f"{what}: {clean(found.detail)}"


def _row(each: CapacityAnswer) -> tuple[str, ...]:
    sustainable, headroom = format.UNKNOWN, format.ratio(each.headroom)
    if each.sustainable is not None:
        sustainable = _range(each.sustainable, format.count)
    elif each.at_least is not None:
        sustainable = f"at least {format.count(each.at_least)}"
        headroom = headroom if each.headroom is None else f"at least {headroom}"
    return (
        each.question.text, format.count(each.arrival),
        format.UNKNOWN if each.batch is None else _range(each.batch, _seconds), sustainable,
        headroom, _backlog(each), format.UNKNOWN if each.limit is None else each.limit.name,
    )  # fmt: skip


def _backlog(each: CapacityAnswer) -> str:
    perhaps = "" if each.sure else "probably "
    match each.behaviour:
        case "keeps_up":
            drains = each.drain is not None and each.drain >= MIN_DRAIN_SECONDS
            return f"{perhaps}keeps up" + (f", backlog clears in {format.duration(each.drain)}" if drains else "")
        case "outlasts":
            missed = ", objective missed" if each.breach is not None else ""
            return f"{perhaps}batches exceed the trigger{missed}"
        case "grows":
            breach = f", objective missed in {format.duration(each.breach)}" if each.breach is not None else ""
            return f"{perhaps}grows by {format.count(each.growth)} rows/s{breach}"
        case "falls_behind":
            return "falls behind"
    return "unknown"


def _seconds(value: float) -> str:
    """With two digits, where one would hide the interval."""
    if value >= UNBOUNDED:
        return "unbounded"
    return f"{value:.2f} s" if 1 <= value < 10 else format.duration(value)


def _range(found: Interval, show: Any) -> str:
    return f"{show(found.value)} ({show(found.low)} to {show(found.high)})"
