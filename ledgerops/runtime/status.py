"""What the live page and the terminal show: one JSON document of all queries at one moment.

Instants are seconds since the epoch, durations seconds, sizes bytes, rates rows a second; None where nothing is known.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from statistics import fmean
from typing import Any

from ledgerops.common.format import duration
from ledgerops.diagnosis.proof import proof
from ledgerops.metrics.event_time import DROPPED
from ledgerops.model.finding import WAITING, Finding, Status, Verdict
from ledgerops.model.head_table import offsets_read_at
from ledgerops.model.history import TREND_SECONDS, TrendPoint, backlog
from ledgerops.model.records import CONTINUOUS, Progress
from ledgerops.runtime.registry import QueryRegistry, QueryState
from ledgerops.runtime.snapshot import Snapshot
from ledgerops.signals.baseline import overran
from ledgerops.signals.query_view import QueryView

VERSION = 1
SERIES_SECONDS = 300.0  # "the last minutes" of the plots
SERIES_POINTS = 100  # a plot is some 300 pixels wide: more points would only cost time and bytes
SERIES = ("at", "arrival", "input", "processed", "backlog", "batch_seconds", "watermark_lag", "state_rows")
Point = tuple[float | None, ...]  # one value for each of SERIES


def status_document(views: QueryRegistry | Snapshot, now: float) -> dict[str, Any]:
    """`{"version", "at", "queries": [...]}`, the queries by name, at `now` (seconds since the epoch)."""
    return {
        "version": VERSION,
        "at": now,
        "queries": [query_status(state, views.view(state, now)) for _, state in sorted(views.states().items())],
    }


def query_status(state: QueryState, view: QueryView) -> dict[str, Any]:
    """One query: figures of now, the verdict on it, and the series of its plots."""
    history, last, verdict = state.history, view.last, state.verdict
    skew = {kind: ratio for kind, (ratio, _) in view.skew.ratios.items() if ratio is not None}
    worst = max(skew, key=skew.__getitem__, default=None)
    status: Status = verdict.status if verdict else "starting"
    runs = history.ended is None  # of a query that ended only the totals still hold
    return {
        "query": history.query, "status": status, "health": verdict.health if verdict else None,
        "verdict": _headline(verdict, status, view),
        "started_at": history.started_at, "ended_at": history.ended.at if history.ended else None,
        "last_seen_at": history.last_seen, "restarts": history.restarts,
        "rates": _rates(view), "backlog": view.lag.unread_offsets, "unread": _unread(view) if runs else None,
        "drain_seconds": _rounded(verdict.forecast.drain_seconds) if verdict and runs else None,
        "lag_seconds": _rounded(view.lag_seconds) if runs else None,
        "busy_ratio": _current_rate(view, view.trigger.busy_ratio),
        "pressure_ratio": _current_rate(view, view.capacity.pressure_ratio),
        "trigger": view.run.plan.trigger, "trigger_interval": view.trigger.interval,
        "batch": _batch(last, view),
        "watermark_lag": _rounded(view.lag.watermark) if runs else None, "state": _state(last),
        "skew": {"kind": worst, "ratio": _rounded(skew[worst])} if worst else None,
        "dropped_rows": int(sum(state.totals.counters.get(DROPPED.name, {}).values())),
        "series": _series(view),
        "findings": [_finding(finding) for finding in verdict.findings] if verdict else [],
        "muted": [finding.rule for finding in verdict.muted] if verdict else [],
    }  # fmt: skip


def _unread(view: QueryView) -> dict[str, int] | None:
    """What is unread in tables, files and queues, over all sources, by unit; None where no source tells."""
    tables = view.tables
    units = {"versions": tables.versions, "rows": tables.rows, "files": tables.files, "bytes": tables.bytes}
    return {unit: sum(values.values()) for unit, values in units.items() if values} or None


def _headline(verdict: Verdict | None, status: Status, view: QueryView) -> dict[str, Any]:
    if verdict and verdict.root_causes:
        return _finding(verdict.root_causes[0])
    said = _sentence(status, view)
    return {"rule": None, "severity": None, "summary": said, "why": "", "evidence": [], "remedies": []}


def _sentence(status: Status, view: QueryView) -> str:
    """The status line of a query without findings."""
    history = view.history
    if view.run.plan.trigger == "real_time" and status in ("healthy", "starting"):
        return _real_time(view)
    if view.run.plan.trigger == CONTINUOUS and status == "starting":
        return "continuous mode; not judged: Spark reports nothing of it"
    if status == "starting":
        few = "one batch" if len(view.batches) == 1 else f"{len(view.batches)} batches"
        return f"{few} so far, too few to judge" if view.batches else _first_batch(view)
    if status == "stopped":
        return _stopped(view)
    if status == "lost":
        return "vanished without reporting its end: its driver, server or session may have died"
    if status == "failed":
        return (history.ended and history.ended.error_class) or "failed with an error"
    if status == "idle":
        return "no new rows to read"
    if status == "catching_up" and view.capacity.drain_seconds is not None:
        return f"catching up; backlog clears in about {duration(view.capacity.drain_seconds)}"
    found, interval = "under pressure" if status == "pressured" else "no problem found", view.trigger.interval
    if status == "pressured" and view.last is not None and overran(view.last, interval):
        return f"overloaded: the last batch took {duration(view.last.duration)}, trigger is {interval:g} s"
    if view.capacity.pressure_ratio is not None:
        return f"{found}; running at {view.capacity.pressure_ratio:.0%} of the sustainable rate"
    if view.trigger.busy_ratio is not None:
        return f"{found}; batches take {view.trigger.busy_ratio:.0%} of the time"
    return found


def _stopped(view: QueryView) -> str:
    ended = view.history.ended
    if ended is None or not ended.with_application:
        return "stopped cleanly"
    every = (*view.others, view.history)
    failed = [other.query for other in view.others if ended.stopped_by(other.ended, every)]
    return "stopped with its application" + (f", after {', '.join(failed)} failed" if failed else "")


def _real_time(view: QueryView) -> str:
    """A real-time query reports once for each of its long batches, whatever it processes meanwhile."""
    interval = view.trigger.interval
    every = f"reports every {interval:g} s" if interval else "reports with each checkpoint"
    return f"real-time; {every}{'' if view.batches else ', not yet since its start'}"


def _first_batch(view: QueryView) -> str:
    running, seconds = view.history.running, view.run.running_seconds
    if running is None or seconds is None:
        return WAITING
    done = f"; {running.tasks_done} of {running.tasks} tasks done" if running.tasks else ""
    return f"its first batch has been running for {duration(seconds)}{done}"


def _finding(finding: Finding) -> dict[str, Any]:
    evidence = [
        {"name": each.name, "value": each.value, "unit": each.unit, "expected": each.expected}
        for each in finding.evidence
    ]
    return {
        "rule": finding.rule, "severity": finding.severity, "since": finding.since, "summary": finding.summary,
        "why": proof(evidence), "evidence": evidence,
        "remedies": [
            {name: getattr(each, name) for name in ("action", "why", "command", "safe", "prevents")}
            for each in finding.remedies
        ],
    }  # fmt: skip


def _rates(view: QueryView) -> dict[str, float | None]:
    read = view.rates.read_by_source
    return {
        "arrival": _current_rate(view, view.rates.arrival),
        "input": _current_rate(view, sum(read.values()) if read else None),
        "processed": _current_rate(view, view.rates.processed),
        "capacity": _rounded(view.capacity.sustainable) if view.history.ended is None else None,
    }


def _current_rate(view: QueryView, value: float | None) -> float | None:
    """A rate of the last minute as it is now: 0 in an idle query; None in one that has ended."""
    if view.history.ended is not None:
        return None
    return _rounded(0.0 if view.run.is_idle else value)


def _batch(last: Progress | None, view: QueryView) -> dict[str, Any] | None:
    if last is None:
        return None
    return {
        "id": last.batch_id, "rows": last.rows, "seconds": _rounded(last.duration), "ended_at": _rounded(last.ended),
        "phases": {phase: _rounded(seconds) for phase, seconds in last.phases.items()},
        "running_seconds": _rounded(view.run.running_seconds),
    }  # fmt: skip


def _state(last: Progress | None) -> dict[str, int] | None:
    if last is None or not last.operators:
        return None
    return {
        "rows": sum(operator.rows for operator in last.operators),
        "bytes": sum(operator.memory_bytes for operator in last.operators),
    }


def _series(view: QueryView) -> dict[str, list[float | None]]:
    """The last minutes, column by column: the trend where whole batches are no longer remembered, then the batches."""
    since = view.now - SERIES_SECONDS
    batches = [batch for batch in view.history.batches if batch.ended >= since]
    first = batches[0].started if batches else view.now
    trend = [point for point in view.history.trend if since <= point.at < first]
    factor = max(view.rates.rows_per_offset.values(), default=1.0)
    points = _merged([*_trend_points(trend, factor), *_batch_points(batches, factor)])
    return {name: [_rounded(point[index]) for point in points] for index, name in enumerate(SERIES)}


def _trend_points(trend: Sequence[TrendPoint], rows_per_offset: float) -> Iterable[Point]:
    for earlier, point in zip((None, *trend), trend, strict=False):
        # where a clock was set back, one is not after the other
        gap = point.at - earlier.at if earlier else TREND_SECONDS
        yield (
            point.at,
            _growth(earlier.heads if earlier else None, point.heads, gap, rows_per_offset),
            point.rows / gap if gap > 0 else None,
            point.rows / point.batch_seconds if point.batch_seconds > 0 else None,
            point.backlog,
            point.batch_seconds / point.batches,
            max(0.0, point.at - point.watermark) if point.watermark is not None else None,
            point.state_rows,
        )


def _batch_points(batches: Sequence[Progress], rows_per_offset: float) -> Iterable[Point]:
    for earlier, batch in zip((None, *batches), batches, strict=False):
        gap = asked = None
        if earlier is not None and earlier.run_id == batch.run_id:
            gap, asked = batch.started - earlier.started, offsets_read_at(batch) - offsets_read_at(earlier)
        yield (
            batch.ended,
            _growth(_head_sum(earlier), _head_sum(batch), asked, rows_per_offset),
            batch.rows / gap if gap and gap > 0 else None,
            batch.rows / batch.duration if batch.duration > 0 else None,
            backlog(batch),
            batch.duration,
            max(0.0, batch.ended - batch.watermark) if batch.watermark is not None else None,
            sum(operator.rows for operator in batch.operators) if batch.operators else None,
        )


def _head_sum(batch: Progress | None) -> int | None:
    known = [offset for source in batch.sources for offset in source.latest.values()] if batch else []
    return sum(known) if known else None


def _growth(earlier: int | None, later: int | None, gap: float | None, rows_per_offset: float) -> float | None:
    """Rows a second by which the heads grew; None when a head is unknown or went back."""
    if earlier is None or later is None or not gap or gap < 0 or later < earlier:
        return None
    return (later - earlier) * rows_per_offset / gap


def _merged(points: Sequence[Point]) -> Sequence[Point]:
    """At most SERIES_POINTS: neighbours are merged, but the newest, by the mean of rates or the maximum."""
    if len(points) <= SERIES_POINTS:
        return points
    *points, newest = points  # which the page also says in words
    size = math.ceil(len(points) / (SERIES_POINTS - 1))
    merge: tuple[Callable[[Sequence[float]], float], ...] = (max, fmean, fmean, fmean, max, max, max, max)
    return [
        tuple(
            how(known) if (known := [value for value in column if value is not None]) else None
            for how, column in zip(merge, zip(*points[start : start + size], strict=True), strict=True)
        )
        for start in range(0, len(points), size)
    ] + [newest]


def _rounded(value: float | None) -> float | None:
    """Milliseconds and thousandths are enough for a display, and keep the document small."""
    return None if value is None else round(value, 3)
