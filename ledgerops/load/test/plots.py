"""The plots of a load test: one job over time (rates, lag, latency, batches, findings), and a search over its rates."""

import math
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from markupsafe import Markup

from ledgerops.analysis.html.axes import elapsed_ticks
from ledgerops.analysis.html.plot import Band, Figure, Line, Panel, Point, Span, svg
from ledgerops.analysis.html.query_plot import batch_panel
from ledgerops.common import format
from ledgerops.load.test.measure import Measured
from ledgerops.load.test.result import JobResult
from ledgerops.load.test.search_report import SearchSummary, middle
from ledgerops.load.test.slo import Outcome, broken

MAX_SPANS = 12  # findings that are drawn: more are in the table
OFFERED_POINTS = 400  # of the offered rate
MAX_LIMIT_RATIO = 5  # of the largest value: an objective far above would press the plot flat


def job_plot(job: JobResult, origin: float) -> Markup:
    """One job over the seconds since the plan began (`origin`, epoch seconds); empty markup where no batch ended."""
    measured = job.measured
    if not measured.done:
        return Markup("")
    low, high = origin, max(measured.end, measured.done[-1].batch.ended)
    panels = list(_panels(job, low, high))
    spans = [
        Span(
            each.began,
            high if each.until is None else each.until,
            each.finding.severity,
            f"{each.finding.rule} ({each.finding.severity}{', root cause' if each.rooted else ''})",
        )
        for each in list(job.findings.periods)[:MAX_SPANS]
    ]
    figure = Figure(
        low,
        high,
        panels,
        elapsed_ticks(low, high),
        "seconds since the plan began",
        "plots over the time since the plan began: " + ", ".join(panel.title for panel in panels),
        bands=[Band(low, measured.begin, "warm-up", "warm-up")],
        spans=spans,
        spans_title="findings",
    )
    return svg(figure)


def _panels(job: JobResult, low: float, high: float) -> Iterator[Panel]:
    measured, done = job.measured, job.measured.done
    known = [(each, measured.batch_figures(each)) for each in done]
    step = (high - low) / OFFERED_POINTS
    offered = [
        (float(at), max(0.0, measured.arrivals.count(at) - measured.arrivals.count(at - step)) / step)
        for at in np.linspace(low, high, OFFERED_POINTS)
    ]
    processed = [
        (each.batch.ended, (each.last - each.first) / (each.batch.ended - before.batch.ended))
        for before, each in pairwise(done)
        if each.batch.ended > before.batch.ended
    ]
    sustainable = job.findings.sustainable
    limit = None if sustainable is None else (sustainable.value, f"sustainable {format.count(sustainable.value)}")
    lines = [Line("offered by the plan", "l1", offered), Line("processed", "l2", processed)]
    yield Panel("rows per second", format.count, 1.0, lines, limit=limit)
    # the lag falls when a batch ends, and grows until the next one does
    age = [point for each, of in known for point in ((each.batch.ended, of.peak), (each.batch.ended, of.left))]
    age = [point for point in age if point[0] <= measured.end] + [(measured.end, measured.final_age)]
    limit = _objective(job.outcomes, ("lag",))
    yield Panel(
        "age of results",
        format.duration,
        1.0,
        [Line("lag", "l1", age)],
        limit=limit,
    )
    legs = [
        Line("p99", "l1", [(each.batch.ended, of.p99) for each, of in known]),
        Line("p50", "l2", [(each.batch.ended, of.p50) for each, of in known]),
        Line("waiting p99", "l3", [(each.batch.ended, of.waiting) for each, of in known]),
        Line("in the batch", "l4", [(each.batch.ended, each.batch.duration) for each in done]),
    ]
    limit = _objective(job.outcomes, ("p99 latency", "p99.9 latency", "p95 latency", "max latency"))
    yield Panel("latency since the due time", format.duration, 1.0, legs, limit=limit)
    track = job.findings.track
    if track is not None:
        yield batch_panel([each for each in track.batches if low <= each.started <= high], measured.trigger)


def _objective(outcomes: Sequence[Outcome], measures: Sequence[str]) -> tuple[float, str] | None:
    """The objective that a panel shows as a line."""
    for each in outcomes:
        if each.slo.measure not in measures or each.limit is None or each.value is None:
            continue
        if each.limit <= MAX_LIMIT_RATIO * max(each.value, 0.2):
            return each.limit, f"objective: {each.slo.text}"
    return None


class RatePlot(NamedTuple):
    """One figure of each trial of a search, drawn over the rates."""

    title: str
    objective: str  # the measure whose objective is drawn as a line
    read: Callable[[Measured], float | None]
    show: Callable[[float], str]
    least: float


RATE_PLOTS = (
    RatePlot("p99 latency since the due time", "p99 latency", lambda m: m.rows.latency.at(0.99), format.duration, 1.0),
    RatePlot("growth of the lag, share of the load", "lag slope", lambda m: m.slope, lambda v: f"{100 * v:g}%", 0.05),
    RatePlot("median batch duration", "batch", lambda m: m.batch_seconds(0.5), format.duration, 1.0),
)


def search_plot(searched: SearchSummary) -> Markup:
    """All trials of a search over their rates on a log axis; empty markup where there was none."""
    rates = searched.found.rates
    if not rates:
        return Markup("")
    ends = searched.found.low, searched.found.high
    bands = []
    if ends[0] is not None and ends[1] is not None:
        bands = [Band(math.log(ends[0].rate), math.log(ends[1].rate), "between")]
    figure = Figure(
        math.log(rates[0].rate / 1.1),
        math.log(rates[-1].rate * 1.1),
        [_rates_panel(plot, searched) for plot in RATE_PLOTS],
        [(math.log(each.rate), format.count(each.rate)) for each in rates],
        "offered rows per second (log scale)",
        "plots over the offered rate: " + ", ".join(plot.title for plot in RATE_PLOTS),
        bands=bands,
    )
    return svg(figure)


def _rates_panel(plot: RatePlot, searched: SearchSummary) -> Panel:
    rates = searched.found.rates
    points = [
        Point(math.log(rate.rate), plot.read(trial), "failed" if broken(judged) else "held")
        for rate in rates
        for trial, judged in zip(rate.trials, rate.judged, strict=True)
    ]
    medians = [(math.log(rate.rate), value) for rate in rates if (value := middle(rate, plot.read)) is not None]
    highest = max([plot.least, *(point.y for point in points if point.y is not None)])
    objective = next((each for each in searched.settings.slos if each.measure == plot.objective), None)
    limit = None
    if objective is not None:
        value = objective.limit if objective.limit is not None else searched.options.trigger
        limit = (value, f"objective: {objective.text}") if value <= MAX_LIMIT_RATIO * highest else None
    line = [Line("", "median", medians)] if len(medians) > 1 else []
    return Panel(plot.title, plot.show, plot.least, line, points=points, limit=limit)
