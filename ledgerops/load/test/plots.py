"""The plots of one job under a load, on one time axis: rates, lag, latency by leg, batches, findings."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np

from ledgerops.analysis.finding_history import Stretch
from ledgerops.analysis.html.axes import STEPS, Scale
from ledgerops.analysis.html.markup import Markup, join, tag
from ledgerops.analysis.html.plots import GAP, HEIGHT, LEFT, RIGHT, TOP, WIDTH, Line, Panel, drawn, thin
from ledgerops.common import format
from ledgerops.load.test.result import JobResult
from ledgerops.load.test.slo import Outcome

LANE = 20.0  # height of a finding's line
LANES = 12  # findings that are drawn: more are in the table
SAMPLES = 400  # of the offered rate
STYLE = """
svg .calm { fill: var(--grey); fill-opacity: .16; } svg .edge { stroke: var(--faint); stroke-dasharray: 3 3; }
svg .span { fill-opacity: .3; stroke-width: 1.5; }
svg .span.critical { fill: var(--critical); stroke: var(--critical); }
svg .span.warning { fill: var(--warning); stroke: var(--warning); stroke-dasharray: 5 3; }
svg .lane { font-size: 11.5px; }
h1.good::before { content: "\\2713\\00a0"; }
h1.critical::before { content: "\\2717\\00a0"; }
"""


def figure(job: JobResult, origin: float) -> Markup:
    """Empty markup where no batch ended."""
    measured = job.measured
    if not measured.done:
        return Markup("")
    low, high = origin, max(measured.end, measured.done[-1].batch.ended)
    x = Scale(low, high, LEFT, RIGHT)
    shown = list(_panels(job, low, high))
    lanes = list(job.findings.stretches)[:LANES]
    plots_end = TOP + len(shown) * (HEIGHT + GAP) - GAP
    bottom = plots_end + (GAP + LANE * len(lanes) if lanes else 0.0)
    parts = [_calm(x, low, measured.begin, bottom)]
    for number, panel in enumerate(shown):
        parts.append(drawn(panel, x, TOP + number * (HEIGHT + GAP)))
    if lanes:
        parts += _lanes(lanes, x, plots_end + GAP, high)
    parts += list(_axis(x, low, high, bottom))
    return tag(
        "svg",
        *parts,
        viewBox=f"0 0 {WIDTH:.0f} {bottom + 40:.0f}",
        role="img",
        aria_label="plots over the time since the plan began: " + ", ".join(panel.title for panel in shown),
        class_="plots",
    )


def _panels(job: JobResult, low: float, high: float) -> Iterator[Panel]:
    measured, done = job.measured, job.measured.done
    told = [(each, measured.of(each)) for each in done]
    at = np.linspace(low, high, SAMPLES)
    step = (high - low) / SAMPLES
    offered = [(float(t), max(0.0, measured.arrivals.count(t) - measured.arrivals.count(t - step)) / step) for t in at]
    cycles = [
        (each.batch.ended, (each.last - each.first) / (each.batch.ended - before.batch.ended))
        for before, each in pairwise(done)
        if each.batch.ended > before.batch.ended
    ]
    sustainable = job.findings.sustainable
    limit = None if sustainable is None else (sustainable.value, f"sustainable {format.count(sustainable.value)}")
    lines = [Line("offered by the plan", "l1", offered), Line("processed", "l2", cycles)]
    yield Panel("rows a second", lines, format.count, 1.0, limit=limit)
    saw: list[tuple[float, float | None]] = [
        point for each, of in told for point in ((each.batch.ended, of.peak), (each.batch.ended, of.left))
    ]
    saw = [point for point in saw if point[0] <= measured.end]
    saw.append((measured.end, measured.left))
    wanted = _limit(job.outcomes, ("lag",))
    yield Panel(
        "lag: age of the oldest row that is not finished", [Line("lag", "l1", saw)], format.duration, 1.0, limit=wanted
    )
    legs = [
        Line("p99", "l1", [(each.batch.ended, of.p99) for each, of in told]),
        Line("p50", "l2", [(each.batch.ended, of.p50) for each, of in told]),
        Line("waiting p99", "l3", [(each.batch.ended, of.waiting) for each, of in told]),
        Line("in the batch", "l4", [(each.batch.ended, each.batch.duration) for each in done]),
    ]
    wanted = _limit(job.outcomes, ("p99 latency", "p99.9 latency", "p95 latency", "max latency"))
    yield Panel("latency from the due time", legs, format.duration, 1.0, limit=wanted)
    track = job.findings.track
    if track is not None:
        batches = [each for each in track.batches if low <= each.started <= high]
        trigger = measured.trigger
        limit = (trigger, f"trigger interval {format.duration(trigger)}") if trigger else None
        yield Panel("batch duration by phase", [], format.duration, 0.1, thin(batches), limit)


def _limit(outcomes: Sequence[Outcome], measures: Sequence[str]) -> tuple[float, str] | None:
    """The objective that a panel shows as a line."""
    for each in outcomes:
        known = each.slo.measure in measures and each.limit is not None and each.value is not None
        # a line far above would press the plot flat
        if known and each.limit is not None and each.limit <= 5 * max(each.value or 0.0, 0.2):
            return each.limit, f"wanted: {each.slo.text}"
    return None


def _calm(x: Scale, low: float, begin: float, bottom: float) -> Markup:
    """The part that is not measured."""
    left, right = x(low), x(begin)
    return join(
        [
            tag("rect", x=left, y=TOP, width=max(0.0, right - left), height=bottom - TOP, class_="calm"),
            tag("line", x1=right, x2=right, y1=TOP - 24, y2=bottom, class_="edge"),
            tag("text", "warm-up", x=right - 5, y=TOP - 16, class_="tick end"),
        ]
    )


def _lanes(stretches: Sequence[Stretch], x: Scale, top: float, high: float) -> list[Markup]:
    """One line a finding, from when it began until it was gone."""
    parts = [tag("text", "findings of the diagnosis", x=LEFT, y=top - 10, class_="title")]
    for number, each in enumerate(stretches):
        y = top + number * LANE
        left, right = x(each.began), x(high if each.until is None else each.until)
        width = max(4.0, right - left)
        style = f"span {each.finding.severity}"
        parts.append(tag("rect", x=left, y=y + 3, width=width, height=LANE - 6, class_=style))
        words = f"{each.finding.rule} ({each.finding.severity}{', root cause' if each.rooted else ''})"
        inside = left + 6 + 6.4 * len(words) < RIGHT
        at, style = (left + 6, "lane") if inside else (left - 6, "lane end")
        parts.append(tag("text", words, x=at, y=y + LANE - 6, class_=style))
    return parts


def _axis(x: Scale, low: float, high: float, bottom: float) -> Iterator[Markup]:
    """Seconds since the plan began."""
    yield tag("line", x1=LEFT, x2=RIGHT, y1=bottom, y2=bottom, class_="axis")
    span = high - low
    step = next((step for step in STEPS if span / step <= 10), STEPS[-1])
    for number in range(math.floor(span / step) + 1):
        at = x(low + number * step)
        yield tag("line", x1=at, x2=at, y1=bottom, y2=bottom + 4, class_="axis")
        yield tag("text", f"{number * step}", x=at, y=bottom + 17, class_="tick middle")
    yield tag("text", "seconds since the plan began", x=(LEFT + RIGHT) / 2, y=bottom + 33, class_="tick middle")
