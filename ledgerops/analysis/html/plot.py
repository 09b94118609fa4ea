"""Plots as SVG: panels one above the other over one horizontal axis, with bands, numbered marks and spans.

A caller describes a `Figure` in its own units. `svg` lays it out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

from markupsafe import Markup, escape

from ledgerops.analysis.html.axes import Scale, Tick, axis_top, value_ticks
from ledgerops.analysis.html.render import render
from ledgerops.common.format import clean

WIDTH, LEFT, RIGHT = 960.0, 58.0, 950.0  # pixels; the panels lie between LEFT and RIGHT
TOP_MARGIN = 54.0  # of the first panel; above it are its title and the numbers of the marks
TITLE_HEIGHT = 44.0  # between two panels
SPAN_HEIGHT = 20.0
MARK_RADIUS, POINT_RADIUS = 8.5, 5.0
CHARACTER_WIDTH = 6.7  # of a legend's font, about: the browser knows its fonts, we do not
MAX_BARS = 300  # three pixels each


class Line(NamedTuple):
    """`style` is a class of the style sheet: colour and dashes. A point whose value is None is a gap."""

    name: str
    style: str
    points: Sequence[tuple[float, float | None]]


class Bar(NamedTuple):
    """A stack from `start` to `end`; `parts` are (class, height) from the bottom up; `text` is its tooltip."""

    start: float
    end: float
    parts: Sequence[tuple[str, float]]
    text: str

    @property
    def height(self) -> float:
        """The height of the whole stack, in the unit of the panel's axis."""
        return sum(height for _, height in self.parts)


class Point(NamedTuple):
    """`y` is None where there is no value: it is drawn at the top. `style` is held, failed or unknown."""

    x: float
    y: float | None
    style: str


class Panel(NamedTuple):
    """One plot. Its axis starts at 0 and reaches at least `least`; `limit` is a labelled horizontal line."""

    title: str
    show: Callable[[float], str]
    least: float
    lines: Sequence[Line] = ()
    bars: Sequence[Bar] = ()
    points: Sequence[Point] = ()
    limit: tuple[float, str] | None = None
    bar_legend: Sequence[tuple[str, str]] = ()  # name, class

    @property
    def values(self) -> list[float]:
        """The heights of all lines, bars and points, in the unit of the axis; without gaps and without the limit."""
        of_lines = [value for line in self.lines for _, value in line.points if value is not None]
        return of_lines + [bar.height for bar in self.bars] + [p.y for p in self.points if p.y is not None]


class Band(NamedTuple):
    """A shaded interval over all panels."""

    start: float
    end: float
    style: str
    label: str = ""


class Mark(NamedTuple):
    """A numbered instant, which the text beside the plot explains."""

    at: float
    number: int
    severity: str


class Span(NamedTuple):
    """A labelled interval, on a row of its own below the panels."""

    start: float
    end: float
    style: str
    label: str


class Figure(NamedTuple):
    """Panels over the horizontal axis [low, high]."""

    low: float
    high: float
    panels: Sequence[Panel]
    ticks: Sequence[Tick]
    axis_title: str
    label: str  # for those who cannot see it
    bands: Sequence[Band] = ()
    marks: Sequence[Mark] = ()
    spans: Sequence[Span] = ()
    spans_title: str = ""
    panel_height: float = 104.0


def svg(figure: Figure, standalone: bool = False) -> Markup:
    """The figure as an element of a page, or as a file of its own; empty markup when it has no panel."""
    if not figure.panels:
        return Markup("")
    bottom = TOP_MARGIN + len(figure.panels) * (figure.panel_height + TITLE_HEIGHT) - TITLE_HEIGHT
    spans_top = bottom + TITLE_HEIGHT
    if figure.spans:
        bottom = spans_top + SPAN_HEIGHT * len(figure.spans)
    x = Scale(figure.low, figure.high, LEFT, RIGHT)
    shapes = [shape for band in figure.bands for shape in _band(band, x, bottom)]
    for number, panel in enumerate(figure.panels):
        shapes += _panel(panel, x, TOP_MARGIN + number * (figure.panel_height + TITLE_HEIGHT), figure.panel_height)
    shapes += [*_spans(figure, x, spans_top), *_axis(figure, x, bottom), *_marks(figure.marks, x, bottom)]
    size = {"width": f"{WIDTH:.0f}", "height": f"{bottom + 40:.0f}"}
    return render("plot.svg", shapes=Markup("").join(shapes), label=figure.label, standalone=standalone, **size)


def thinned_bars(bars: Sequence[Bar]) -> Sequence[Bar]:
    """At most MAX_BARS bars; of neighbours the highest stays."""
    size = max(1, -(-len(bars) // MAX_BARS))
    return [max(bars[start : start + size], key=lambda bar: bar.height) for start in range(0, len(bars), size)]


def _shape(element: str, *, text: str = "", children: Sequence[Markup] = (), **attributes: float | str) -> Markup:
    """An SVG element. `class_` is class; coordinates get one digit, more is not seen and makes the file large."""
    given = ""
    for name, value in attributes.items():
        shown = f"{value:.1f}".removesuffix(".0") if isinstance(value, float | int) else escape(clean(value))
        given += f' {name.rstrip("_")}="{shown}"'
    inner = f"{escape(clean(text))}{''.join(children)}"
    return Markup(f"<{element}{given}>{inner}</{element}>" if inner else f"<{element}{given}/>")


def _panel(panel: Panel, x: Scale, top: float, height: float) -> list[Markup]:
    highest = axis_top(panel.values, max(panel.least, panel.limit[0] if panel.limit else 0.0))
    y = Scale(0.0, highest, top + height, top)
    shapes = [_shape("text", text=panel.title, x=LEFT, y=top - 10, class_="title")]
    for value, label in value_ticks(highest, panel.show):
        shapes.append(_shape("line", x1=LEFT, x2=RIGHT, y1=y(value), y2=y(value), class_="grid"))
        shapes.append(_shape("text", text=label, x=LEFT - 6, y=y(value) + 4, class_="tick end"))
    shapes += [_bar(bar, x, y) for bar in panel.bars]
    shapes += [shape for line in panel.lines for shape in _line(line, x, y)]
    shapes += [_point(point, x, y, top) for point in panel.points]
    if panel.limit:
        shapes.append(_shape("line", x1=LEFT, x2=RIGHT, y1=y(panel.limit[0]), y2=y(panel.limit[0]), class_="limit"))
    legend = [(line.name, f"line {line.style}", False) for line in panel.lines if line.name]
    legend = (legend if len(legend) > 1 else []) + [(name, style, True) for name, style in panel.bar_legend]
    return shapes + _legend(legend + ([(panel.limit[1], "limit", False)] if panel.limit else []), top - 10)


def _line(line: Line, x: Scale, y: Scale) -> Iterator[Markup]:
    """A path with gaps where nothing is known; a single point is a dot."""
    for known, points in groupby(line.points, key=lambda point: point[1] is not None):
        if not known:
            continue
        places = [(x(at), y(value)) for at, value in points if value is not None]
        if len(places) == 1:
            yield _shape("circle", cx=places[0][0], cy=places[0][1], r=2, class_=f"dot {line.style}")
            continue
        path = " ".join(f"{across:.1f},{down:.1f}" for across, down in _thinned_line(places))
        yield _shape("polyline", points=path, class_=f"line {line.style}")


def _thinned_line(places: Sequence[tuple[float, float]]) -> Iterator[tuple[float, float]]:
    """At most four points a pixel column: first, lowest, highest, last."""
    for _, group in groupby(places, key=lambda place: round(place[0])):
        column = list(group)
        if len(column) <= 4:
            yield from column
        else:
            low, high = sorted((min(column, key=lambda p: p[1]), max(column, key=lambda p: p[1])))
            yield from (column[0], low, high, column[-1])


def _bar(bar: Bar, x: Scale, y: Scale) -> Markup:
    left = x(bar.start)
    width = max(1.5, x(bar.end) - left - 0.5)
    children, base = [_shape("title", text=bar.text)], 0.0
    for style, height in bar.parts:
        upper, lower = y(base + height), y(base)
        if lower - upper >= 0.2:
            children.append(_shape("rect", x=left, y=upper, width=width, height=lower - upper, class_=style))
        base += height
    return _shape("g", children=children)


def _point(point: Point, x: Scale, y: Scale, top: float) -> Markup:
    """A circle, a cross, or a triangle at the top where there is no value: not by its colour alone."""
    across, r = x(point.x), POINT_RADIUS
    if point.y is None:
        path = f"M{across - r:.1f} {top + 2 * r:.1f}h{2 * r:.1f}L{across:.1f} {top:.1f}z"
        return _shape("path", d=path, class_="point unknown")
    if point.style == "held":
        return _shape("circle", cx=across, cy=y(point.y), r=r, class_="point held")
    corner = f"M{across - r:.1f} {y(point.y) - r:.1f}l{2 * r:.1f} {2 * r:.1f}m0 {-2 * r:.1f}l{-2 * r:.1f} {2 * r:.1f}"
    return _shape("path", d=corner, class_="point failed")


def _legend(entries: Sequence[tuple[str, str, bool]], baseline: float) -> list[Markup]:
    """(name, class, whether it is a box), from right to left so that it never runs into the title."""
    shapes, right = [], RIGHT - 6
    for name, style, is_box in reversed(entries):
        right -= CHARACTER_WIDTH * len(name)
        shapes.append(_shape("text", text=name, x=right, y=baseline, class_="tick"))
        if is_box:
            shapes.append(_shape("rect", x=right - 14, y=baseline - 9, width=10, height=10, class_=style))
        else:
            y = baseline - 4
            shapes.append(_shape("line", x1=right - 26, x2=right - 5, y1=y, y2=y, class_=style))
        right -= 26 if is_box else 38
    return shapes


def _band(band: Band, x: Scale, bottom: float) -> Iterator[Markup]:
    left, right = x(band.start), x(band.end)
    top = TOP_MARGIN - 28  # with the title of the first panel
    yield _shape("rect", x=left, y=top, width=max(1.5, right - left), height=bottom - top, class_=band.style)
    if band.label:
        yield _shape("text", text=band.label, x=right, y=top - 6, class_="tick end")


def _spans(figure: Figure, x: Scale, top: float) -> Iterator[Markup]:
    if figure.spans:
        yield _shape("text", text=figure.spans_title, x=LEFT, y=top - 10, class_="title")
    for number, span in enumerate(figure.spans):
        y = top + number * SPAN_HEIGHT
        left = x(span.start)
        width = max(4.0, x(span.end) - left)
        yield _shape("rect", x=left, y=y + 3, width=width, height=SPAN_HEIGHT - 6, class_=f"span {span.style}")
        fits = left + 6 + CHARACTER_WIDTH * len(span.label) < RIGHT
        place, style = (left + 6, "tick ink") if fits else (left - 6, "tick ink end")
        yield _shape("text", text=span.label, x=place, y=y + SPAN_HEIGHT - 6, class_=style)


def _axis(figure: Figure, x: Scale, bottom: float) -> Iterator[Markup]:
    yield _shape("line", x1=LEFT, x2=RIGHT, y1=bottom, y2=bottom, class_="axis")
    free = 0.0
    for at, label in figure.ticks:
        yield _shape("line", x1=x(at), x2=x(at), y1=bottom, y2=bottom + 4, class_="axis")
        half = CHARACTER_WIDTH * len(label) / 2
        if x(at) - half >= free and x(at) + half <= WIDTH:  # labels never touch
            yield _shape("text", text=label, x=x(at), y=bottom + 17, class_="tick middle")
            free = x(at) + half + 6
    yield _shape("text", text=figure.axis_title, x=(LEFT + RIGHT) / 2, y=bottom + 34, class_="tick middle")


def _marks(marks: Sequence[Mark], x: Scale, bottom: float) -> Iterator[Markup]:
    """Numbers in a row above the panels; those that would touch stand side by side, their lines stay at the instant."""
    free, row = 0.0, TOP_MARGIN - 38
    for mark in sorted(marks):
        at = x(mark.at)
        middle = min(max(at, free + MARK_RADIUS + 0.5), WIDTH - MARK_RADIUS)
        free = middle + MARK_RADIUS + 0.5
        yield _shape("line", x1=at, x2=at, y1=row + MARK_RADIUS, y2=bottom, class_=f"mark {mark.severity}")
        yield _shape("circle", cx=middle, cy=row, r=MARK_RADIUS, class_=f"number {mark.severity}")
        yield _shape("text", text=str(mark.number), x=middle, y=row + 4, class_="number middle")
