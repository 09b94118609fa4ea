"""A figure becomes SVG: what is drawn, what is left out, and that texts stay texts."""

import re
from xml.etree import ElementTree

import pytest

from ledgerops.analysis.html.plot import (
    LEFT,
    MAX_BARS,
    RIGHT,
    WIDTH,
    Band,
    Bar,
    Figure,
    Line,
    Mark,
    Panel,
    Point,
    Span,
    svg,
    thinned_bars,
)

HOSTILE = '</svg><script>alert("1")</script>\u202e\x1b'


def drawn(*panels, standalone=True, **options):
    return svg(Figure(0.0, 100.0, panels, [(0.0, "0"), (50.0, "50")], "s", "a plot", **options), standalone)


def panel(**options):
    return Panel("rows", "{:g}".format, 1.0, **options)


def elements(text, name):
    return ElementTree.fromstring(text).findall(f".//{{http://www.w3.org/2000/svg}}{name}")


def test_a_line_has_a_gap_where_nothing_is_known():
    text = drawn(panel(lines=[Line("a", "l1", [(0, 1.0), (10, 2.0), (20, None), (30, 1.0), (40, None)])]))
    assert [each.get("class") for each in elements(text, "polyline")] == ["line l1"]
    assert [each.get("class") for each in elements(text, "circle")] == ["dot l1"]  # a point without neighbours


def test_a_peak_stays_however_many_points_there_are():
    points = [(number / 100, 9.0 if number == 4321 else 1.0) for number in range(10_000)]
    [line] = elements(drawn(panel(lines=[Line("a", "l1", points)])), "polyline")

    places = [tuple(map(float, place.split(","))) for place in line.get("points").split()]
    assert len(places) <= 4 * (RIGHT - LEFT + 1)
    assert min(y for _, y in places) < min(y for x, y in places if abs(x - LEFT - 385.4) > 5) - 50


def test_of_many_bars_the_highest_of_neighbours_stays():
    bars = [Bar(n, n + 1, [("p-add_batch", 7.0 if n == 500 else 1.0)], "") for n in range(1000)]

    assert len(thinned_bars(bars)) <= MAX_BARS
    assert max(bar.height for bar in thinned_bars(bars)) == 7.0
    assert thinned_bars(bars[:3]) == bars[:3] and thinned_bars([]) == []


def test_trials_differ_in_shape_and_not_by_colour_alone():
    text = drawn(panel(points=[Point(1, 1.0, "held"), Point(2, 1.0, "failed"), Point(3, None, "failed")]))
    shapes = [each.get("class") for name in ("circle", "path") for each in elements(text, name)]
    assert shapes == ["point held", "point failed", "point unknown"]


def test_marks_at_one_instant_stand_side_by_side():
    text = drawn(
        panel(lines=[Line("a", "l1", [(0, 1.0), (9, 2.0)])]), marks=[Mark(100.0, n, "critical") for n in (1, 2, 3)]
    )

    across = [float(each.get("cx")) for each in elements(text, "circle")]
    assert max(across) <= WIDTH and across[:1] != across[1:2]


def test_labels_of_an_axis_never_touch():
    ticks = [(float(each), f"{each:,} rows") for each in range(100)]
    figure = Figure(0.0, 100.0, [panel(lines=[Line("a", "l1", [(0, 1.0), (9, 1.0)])])], ticks, "rows", "x")

    shown = [each for each in elements(svg(figure, True), "text") if (each.text or "").endswith(" rows")]
    assert 5 < len(shown) < 20


def test_a_figure_without_a_panel_is_nothing():
    assert drawn() == ""


@pytest.mark.parametrize("standalone", [True, False], ids=["file", "element"])
def test_texts_stay_texts(standalone):
    text = drawn(
        Panel(
            HOSTILE, "{:g}".format, 1.0, [Line(HOSTILE, "l1", [(0, 1.0), (1, 2.0)]), Line("b", "l2", [(0, 1.0)])],
            [Bar(0, 1, [("p-add_batch", 1.0)], HOSTILE)], limit=(1.0, HOSTILE),
        ),
        standalone=standalone, bands=[Band(0, 1, "incident", HOSTILE)], spans=[Span(0, 1, "critical", HOSTILE)],
        spans_title=HOSTILE,
    )  # fmt: skip

    assert "<script" not in text and "\u202e" not in text and "\x1b" not in text
    assert text.count("</svg>") == 1
    assert len(re.findall("&lt;/svg&gt;", text)) == 7


def test_a_file_of_its_own_has_its_style_and_is_well_formed():
    text = drawn(panel(lines=[Line("a", "l1", [(0, 1.0), (9, 1.0)])]))
    assert ElementTree.fromstring(text).tag == "{http://www.w3.org/2000/svg}svg"
    assert "prefers-color-scheme: dark" in text and "svg .l1 {" in text
