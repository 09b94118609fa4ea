"""The plots of a query as one SVG: lag, rates, batch phases and skew over the same time, the incident as a band."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

from ledgerops.analysis.html.axes import Scale, ceiling, instants, ticks
from ledgerops.analysis.html.markup import Markup, join, tag
from ledgerops.analysis.plot_series import Batch, Track
from ledgerops.common import format

WIDTH, LEFT, RIGHT = 960.0, 58.0, 950.0
TOP, HEIGHT, GAP = 30.0, 104.0, 44.0  # of a panel: its title stands in the gap above it
MARKS = 18.0  # height of the row of numbers above the first panel
COLUMNS = 300  # bars of the phases: three pixels each
PHASES = {  # in the order in which they run, as on the terminal: name -> class
    "latest_offset": "offsets",
    "wal_commit": "log",
    "get_batch": "get",
    "query_planning": "plan",
    "add_batch": "work",
    "commit_offsets": "commit",
}
SKEWS = {
    "source_partition": "source partitions",
    "task_records": "rows of tasks",
    "task_time": "time of tasks",
    "executor": "executors",
}


class Mark(NamedTuple):
    """A numbered instant: the timeline says what began then."""

    at: float
    number: int
    severity: str


class Line(NamedTuple):
    name: str
    style: str  # class: colour and dashes
    points: Sequence[tuple[float, float | None]]


class Panel(NamedTuple):
    title: str
    lines: Sequence[Line]
    show: Callable[[float], str]
    least: float  # upper end of the axis at least
    bars: Sequence[Batch] = ()
    limit: tuple[float, str] | None = None


def plots(track: Track, low: float, high: float, bands: Sequence[tuple[float, float]], marks: Sequence[Mark]) -> Markup:
    """All panels for which there is something between two instants; empty markup when there is nothing at all."""
    panels = [panel for panel in _panels(track, low, high) if panel.bars or any(line.points for line in panel.lines)]
    if not panels:
        return Markup("")
    x = Scale(low, high, LEFT, RIGHT)
    bottom = TOP + MARKS + len(panels) * (HEIGHT + GAP) - GAP
    parts = [_band(x, band, bottom) for band in bands]
    for number, panel in enumerate(panels):
        top = TOP + MARKS + number * (HEIGHT + GAP)
        parts.append(drawn(panel, x, top))
    parts += [_time(x, low, high, bottom), *_marks(marks, x, bottom)]
    return tag(
        "svg",
        *parts,
        viewBox=f"0 0 {WIDTH:.0f} {bottom + 24:.0f}",
        role="img",
        aria_label="plots over time: " + ", ".join(panel.title for panel in panels),
        class_="plots",
    )


def _panels(track: Track, low: float, high: float) -> Iterator[Panel]:
    batches = [each for each in track.batches if low <= each.ended and each.started <= high]
    age = [(each.at, each.value) for each in track.age if low <= each.at <= high]
    yield Panel("lag: how long a row waits for its result", [Line("lag", "l1", age)], format.duration, 1.0)
    rates = [
        Line("arrival", "l1", [(each.started, each.arrival) for each in batches]),
        Line("read", "l2", [(each.started, each.read) for each in batches]),
        Line("processing rate", "l3", [(each.ended, each.processed) for each in batches]),
    ]
    if all(arrival is None for _, arrival in rates[0].points):
        rates = rates[1:]
    yield Panel("rows a second", [line for line in rates if line.points], format.count, 1.0)
    limit = (track.interval, f"trigger interval {format.duration(track.interval)}") if track.interval else None
    yield Panel("batch duration by phase", [], format.duration, 0.1, thin(batches), limit)
    skew = [
        Line(SKEWS.get(kind, kind), f"l{number}", [(each.at, each.value) for each in samples if low <= each.at <= high])
        for number, (kind, samples) in enumerate(sorted(track.skew.items()), 1)
    ]
    yield Panel("skew: largest over median", [line for line in skew if line.points], format.ratio, 2.0)


def thin(batches: Sequence[Batch]) -> Sequence[Batch]:
    """At most COLUMNS bars: of neighbours the longest stays."""
    size = -(-len(batches) // COLUMNS)
    if size <= 1:
        return batches
    return [max(batches[start : start + size], key=lambda each: each.seconds) for start in range(0, len(batches), size)]


def drawn(panel: Panel, x: Scale, top: float) -> Markup:
    """One panel whose plot begins at `top` and is HEIGHT high; its title stands above it."""
    values = [value for line in panel.lines for _, value in line.points if value is not None]
    values += [each.seconds for each in panel.bars]
    highest = ceiling(values, max(panel.least, panel.limit[0] if panel.limit else 0.0))
    y = Scale(0.0, highest, top + HEIGHT, top)
    parts = [tag("text", panel.title, x=LEFT, y=top - 10, class_="title")]
    for value, label in ticks(highest, panel.show):
        parts.append(tag("line", x1=LEFT, x2=RIGHT, y1=y(value), y2=y(value), class_="grid"))
        parts.append(tag("text", label, x=LEFT - 6, y=y(value) + 4, class_="tick end"))
    parts += list(_bars(panel.bars, x, y))
    parts += [_line(line, x, y) for line in panel.lines]
    if panel.limit:
        parts.append(tag("line", x1=LEFT, x2=RIGHT, y1=y(panel.limit[0]), y2=y(panel.limit[0]), class_="limit"))
    legend = [(line.name, f"line {line.style}", False) for line in panel.lines] if len(panel.lines) > 1 else []
    if panel.bars:
        shown = {phase for batch in panel.bars for phase, seconds in batch.phases.items() if seconds > 0}
        legend = [(name, f"p-{name}", True) for phase, name in PHASES.items() if phase in shown]
        legend += [("unclaimed", "p-rest", True)] if any(_rest(each) > 0 for each in panel.bars) else []
    legend += [(panel.limit[1], "limit", False)] if panel.limit else []
    parts.append(_legend(legend, top - 10))
    return tag("g", *parts)


def _line(line: Line, x: Scale, y: Scale) -> Markup:
    """A path with gaps where nothing is known; a single point is a dot."""
    parts = []
    for known, points in groupby(line.points, key=lambda point: point[1] is not None):
        if not known:
            continue
        places = [(x(at), y(value)) for at, value in points if value is not None]
        if len(places) == 1:
            parts.append(tag("circle", cx=places[0][0], cy=places[0][1], r=2, class_=f"dot {line.style}"))
            continue
        steps = " ".join(f"{across:.1f},{up:.1f}" for across, up in _spread(places))
        parts.append(tag("polyline", points=steps, class_=f"line {line.style}"))
    return join(parts)


def _spread(places: Sequence[tuple[float, float]]) -> Iterator[tuple[float, float]]:
    """At most four points a pixel column: first, lowest, highest, last."""
    for _, group in groupby(places, key=lambda place: round(place[0])):
        column = list(group)
        if len(column) <= 4:
            yield from column
        else:
            low, high = sorted((min(column, key=lambda p: p[1]), max(column, key=lambda p: p[1])))
            yield from (column[0], low, high, column[-1])


def _bars(batches: Sequence[Batch], x: Scale, y: Scale) -> Iterator[Markup]:
    """One bar a batch, from its start to its end, its phases one above the other."""
    for batch in batches:
        left = x(batch.started)
        width = max(1.5, x(batch.ended) - left - 0.5)
        parts, base = [tag("title", _told(batch))], 0.0
        for phase, name in PHASES.items():
            seconds = batch.phases.get(phase, 0.0)
            if seconds > 0 and y(base) - y(base + seconds) >= 0.2:
                parts.append(_part(left, width, y, base, seconds, name))
            base += max(0.0, seconds)
        rest = _rest(batch)
        if rest > 0:
            parts.append(_part(left, width, y, base, rest, "rest"))
        yield tag("g", *parts)


def _part(left: float, width: float, y: Scale, base: float, seconds: float, name: str) -> Markup:
    upper = y(base + seconds)
    return tag("rect", x=left, y=upper, width=width, height=y(base) - upper, class_=f"p-{name}")


def _rest(batch: Batch) -> float:
    """Seconds of a batch that no phase claims, where they are worth seeing."""
    rest = batch.seconds - sum(batch.phases.get(phase, 0.0) for phase in PHASES)
    return rest if rest > 0.02 * batch.seconds else 0.0


def _told(batch: Batch) -> str:
    phases = ", ".join(f"{PHASES.get(name, name)} {format.duration(each)}" for name, each in batch.phases.items())
    return f"{format.count(batch.rows)} rows in {format.duration(batch.seconds)}: {phases}"


def _legend(entries: Sequence[tuple[str, str, bool]], baseline: float) -> Markup:
    """From right to left, so that it never runs into the title."""
    parts, right = [], RIGHT - 6
    for name, style, is_box in reversed(entries):
        right -= 6.6 * len(name)  # about as wide as the text: a browser knows its fonts, we do not
        parts.append(tag("text", name, x=right, y=baseline, class_="tick"))
        if is_box:
            parts.append(tag("rect", x=right - 14, y=baseline - 9, width=10, height=10, class_=style))
        else:
            parts.append(tag("line", x1=right - 24, x2=right - 5, y1=baseline - 4, y2=baseline - 4, class_=style))
        right -= 30 if not is_box else 22
    return join(parts)


def _band(x: Scale, band: tuple[float, float], bottom: float) -> Markup:
    left, right = x(band[0]), x(band[1])
    return tag("rect", x=left, y=TOP, width=max(1.5, right - left), height=bottom - TOP, class_="band")


def _time(x: Scale, low: float, high: float, bottom: float) -> Markup:
    parts = [tag("line", x1=LEFT, x2=RIGHT, y1=bottom, y2=bottom, class_="axis")]
    for at, label in instants(low, high):
        parts.append(tag("line", x1=x(at), x2=x(at), y1=bottom, y2=bottom + 4, class_="axis"))
        if LEFT + 10 <= x(at) <= RIGHT - 54:
            parts.append(tag("text", label, x=x(at), y=bottom + 17, class_="tick middle"))
    parts.append(tag("text", "UTC", x=RIGHT, y=bottom + 17, class_="tick end"))
    return join(parts)


def _marks(marks: Sequence[Mark], x: Scale, bottom: float) -> Iterator[Markup]:
    """Numbers in a row above the plots; those that would touch stand side by side, their lines where they belong."""
    free = 0.0
    for mark in sorted(marks):
        at = x(mark.at)
        middle = max(at, free + 9.0)
        free = middle + 9.0
        yield tag("line", x1=at, x2=at, y1=TOP, y2=bottom, class_=f"mark {mark.severity}")
        yield tag("circle", cx=middle, cy=TOP - 10, r=8.5, class_=f"number {mark.severity}")
        yield tag("text", str(mark.number), x=middle, y=TOP - 6, class_="number middle")
