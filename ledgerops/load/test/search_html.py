"""The report of a search as one HTML file: the answer, rates against latency, lag and batch time, and all trials."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from ledgerops.analysis.html.axes import Scale, ceiling, ticks
from ledgerops.analysis.html.markup import Markup, join, tag
from ledgerops.analysis.html.parts import table
from ledgerops.analysis.html.plots import GAP, HEIGHT, LEFT, RIGHT, TOP, WIDTH
from ledgerops.common import format
from ledgerops.common.format import clock
from ledgerops.load.test.html import render
from ledgerops.load.test.measure import Measured
from ledgerops.load.test.result import seconds, spark
from ledgerops.load.test.search import Rate
from ledgerops.load.test.search_report import HEADS, Searched, middle, percent
from ledgerops.load.test.slo import broken
from ledgerops.model.spark_progress import format_instant

MARK = 5.0  # half the width of a mark
WHOLE = (1, 1.5, 2, 3, 4, 5, 7)  # where a log axis may have a label, times a power of ten
STYLE = """
svg .held { fill: var(--blue); stroke: var(--paper); stroke-width: 1; }
svg .broke { stroke: var(--critical); stroke-width: 2.4; fill: none; }
svg .blank { stroke: var(--warning); stroke-width: 2; fill: none; }
svg .between { fill: var(--green); fill-opacity: .14; }
svg .median { stroke: var(--ink); stroke-width: 1.3; fill: none; stroke-opacity: .55; }
"""


class Plot(NamedTuple):
    """One figure of a trial against its rate."""

    title: str
    measure: str  # of the objective that is its limit
    read: Callable[[Measured], float | None]
    show: Callable[[float], str]
    least: float


PLOTS = (
    Plot("p99 latency from the due time", "p99 latency", lambda m: m.latency.at(0.99), format.duration, 1.0),
    Plot("growth of the lag, share of the load", "lag slope", lambda m: m.slope, lambda v: f"{v:.0%}", 0.05),
    Plot("median batch duration", "batch", lambda m: m.batch(0.5), format.duration, 1.0),
)


def page(searched: Searched) -> str:
    """Everything in one file; no script, no network."""
    low = searched.found.low
    body = [
        Markup(f"<style>{STYLE}</style>"),
        tag("h1", searched.headline, class_="good" if low is not None else "critical"),
        *([tag("p", _reason(searched), class_="lead")]),
        _meta(searched),
        *([_next(searched)] if low is not None else []),
        tag(
            "figure",
            figure(searched),
            tag(
                "figcaption",
                "One mark a trial: a full circle held every objective, a cross failed one, a triangle at the top has "
                "no figure and so failed. The thin line joins the medians; the green band is where the answer lies.",
            ),
        ),
        tag("h2", "Rates"),
        _table(searched.found.rates),
        tag("h2", "Objectives"),
        tag("ul", *(tag("li", tag("code", each.text)) for each in searched.settings.slos)),
        tag("p", "Each must hold in the median of a rate's trials. What a trial does not tell fails.", class_="faint"),
    ]
    return render(searched.headline, body)


def _reason(searched: Searched) -> str:
    found = searched.found
    if found.reason:
        return found.reason[:1].upper() + found.reason[1:]
    assert found.high is not None
    return f"At {found.high.rate:,.0f} rows/s: {'; '.join(broken(found.high.outcomes))}"


def _meta(searched: Searched) -> Markup:
    options, settings = searched.options, searched.settings
    trials = sum(len(each.trials) for each in searched.found.rates)
    told = (
        f"{format.instant(format_instant(searched.began))}; {trials} trials of {options.seconds:.0f} s, in "
        f"{clock(searched.took)} min; trigger interval {options.trigger:g} s; the two ends up to {settings.repeat} "
        f"times each, in the order of seed {settings.seed}; {spark(options.cores)}"
    )
    return tag("p", told, class_="meta")


def _next(searched: Searched) -> Markup:
    job = searched.options.job
    command = f"ledgerops load test --job {job} --load 0.9"
    return tag("p", tag("b", "Prove it:"), tag("code", command), " runs it at 0.9 of this rate.", class_="do")


def figure(searched: Searched) -> Markup:
    """All plots over one axis of rates, in log space."""
    rates = searched.found.rates
    if not rates:
        return Markup("")
    low, high = rates[0].rate / 1.1, rates[-1].rate * 1.1
    x = Scale(math.log(low), math.log(high), LEFT, RIGHT)
    bottom = TOP + len(PLOTS) * (HEIGHT + GAP) - GAP
    parts: list[Markup] = []
    ends = searched.found.low, searched.found.high
    if ends[0] is not None and ends[1] is not None:
        left, right = (x(math.log(each.rate)) for each in ends if each is not None)
        parts.append(tag("rect", x=left, y=TOP, width=right - left, height=bottom - TOP, class_="between"))
    for number, plot in enumerate(PLOTS):
        parts.append(_drawn(plot, searched, x, TOP + number * (HEIGHT + GAP)))
    parts.append(tag("line", x1=LEFT, x2=RIGHT, y1=bottom, y2=bottom, class_="axis"))
    for at in _labels(low, high):
        across = x(math.log(at))
        parts.append(tag("line", x1=across, x2=across, y1=bottom, y2=bottom + 4, class_="axis"))
        parts.append(tag("text", format.count(at), x=across, y=bottom + 17, class_="tick middle"))
    parts.append(
        tag("text", "offered rows a second (log scale)", x=(LEFT + RIGHT) / 2, y=bottom + 34, class_="tick middle")
    )
    return tag(
        "svg",
        *parts,
        viewBox=f"0 0 {WIDTH:.0f} {bottom + 42:.0f}",
        role="img",
        aria_label="plots over the offered rate: " + ", ".join(plot.title for plot in PLOTS),
        class_="plots",
    )


def _drawn(plot: Plot, searched: Searched, x: Scale, top: float) -> Markup:
    rates = searched.found.rates
    limit = next((each for each in searched.settings.slos if each.measure == plot.measure), None)
    wanted = None if limit is None else (limit.limit if limit.limit is not None else searched.options.trigger)
    values = [value for rate in rates for each in rate.trials if (value := plot.read(each)) is not None]
    near = wanted is not None and wanted <= 5 * max([plot.least, *values])
    highest = ceiling([*values, *([1.25 * wanted] if near and wanted is not None else [])], plot.least)
    y = Scale(0.0, highest, top + HEIGHT, top)
    parts = [tag("text", plot.title, x=LEFT, y=top - 10, class_="title")]
    for value, label in ticks(highest, plot.show):
        parts.append(tag("line", x1=LEFT, x2=RIGHT, y1=y(value), y2=y(value), class_="grid"))
        parts.append(tag("text", label, x=LEFT - 6, y=y(value) + 4, class_="tick end"))
    if near and limit is not None and wanted is not None:
        parts.append(tag("line", x1=LEFT, x2=RIGHT, y1=y(wanted), y2=y(wanted), class_="limit"))
        parts.append(tag("text", f"wanted: {limit.text}", x=RIGHT - 4, y=y(wanted) - 5, class_="tick end"))
    joined = [(x(math.log(r.rate)), y(v)) for r in rates if (v := middle(r, plot.read)) is not None]
    parts.append(tag("polyline", points=" ".join(f"{a:.1f},{b:.1f}" for a, b in joined), class_="median"))
    for rate in rates:
        for measured, judged in zip(rate.trials, rate.judged, strict=True):
            known = plot.read(measured)
            parts.append(_mark(x(math.log(rate.rate)), None if known is None else y(known), not broken(judged), top))
    return tag("g", *parts)


def _mark(x: float, y: float | None, held: bool, top: float) -> Markup:
    if y is None:
        points = f"{x - MARK:.1f},{top + 2 * MARK:.1f} {x + MARK:.1f},{top + 2 * MARK:.1f} {x:.1f},{top:.1f}"
        return tag("polygon", points=points, class_="blank")
    if held:
        return tag("circle", cx=x, cy=y, r=MARK, class_="held")
    return tag(
        "path",
        d=f"M{x - MARK:.1f} {y - MARK:.1f}L{x + MARK:.1f} {y + MARK:.1f}M{x - MARK:.1f} {y + MARK:.1f}"
        f"L{x + MARK:.1f} {y - MARK:.1f}",
        class_="broke",
    )


def _labels(low: float, high: float) -> list[float]:
    """Round rates between two."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    every = [step * 10.0**power for power in powers for step in WHOLE]
    found = [each for each in every if low <= each <= high]
    while len(found) > 12:
        found = found[::2]
    return found


def _table(rates: Sequence[Rate]) -> Markup:
    rows = []
    for rate in rates:
        verdict = tag("span", "held", class_="tagged good")
        if not rate.held:
            why = "; ".join(broken(rate.outcomes))
            verdict = join([tag("span", "failed", class_="tagged critical"), tag("span", f" {why}")])
        told = [
            f"{rate.rate:,.0f}",
            str(len(rate.trials)),
            percent(middle(rate, lambda m: m.slope)),
            seconds(middle(rate, lambda m: m.latency.at(0.99))),
            seconds(middle(rate, lambda m: m.batch(0.5))),
            seconds(middle(rate, lambda m: m.batch(0.95))),
        ]
        rows.append(tag("tr", *(tag("td", each, class_="amount") for each in told), tag("td", verdict)))
    return table(HEADS, rows, HEADS[:-1])
