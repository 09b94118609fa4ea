"""What a page has besides its panels: annotations, and the place of each panel."""

from collections.abc import Iterator
from typing import NamedTuple

from ledgerops.mixin.dashboards.model import ALERTING, BAD, COLD, ONE, Page, Panel, Row, by, q

WIDTH = 24
PAUSE = "1d"  # a query that was away for longer begins anew: no restart is marked
# the shortest step at which marks are evaluated: Grafana's grows with the page's time. An event is marked once, in the
# step in which it begins, also if it is over before that ends
MARK_STEP = "1m"
STEP = "$__interval"  # the step that Grafana has chosen


class Mark(NamedTuple):
    """Lines at the moments at which something begins."""

    name: str
    expr: str
    title: str
    colour: str


class Place(NamedTuple):
    """A panel's number on its page and its place in the grid; `y` counts from the top of the page."""

    panel: Panel
    number: int
    x: int
    y: int


STARTED = q("ledgerops_query_start_timestamp_seconds")
CRITICAL = f'ALERTS{{alertstate="firing", severity="critical", {ALERTING}}}'
MARKS = (
    # where one begins to fire: a line, where a span would paint over the plots
    Mark(
        "Critical alerts", f"max_over_time({CRITICAL}[{STEP}]) unless {CRITICAL} offset {STEP}",
        "{{alertname}} {{query}}", BAD,
    ),
    Mark(
        "Restarts",
        # the newest start is later than that of a step ago, or of before the pause, on whichever driver
        f"{by('max', ONE, f'max_over_time({STARTED}[{STEP}])')} > "
        f"{by('max', ONE, f'last_over_time({STARTED}[{PAUSE}] offset {STEP})')}",
        "{{query}} restarted",
        COLD,
    ),
)  # fmt: skip


def places(page: Page) -> Iterator[tuple[Row, int, int, list[Place]]]:
    """Each row with its number, its y and its panels: rows from top to bottom, panels from left to right."""
    number, y = 0, 0
    for row in page.rows:
        number += 1
        head, own = y, number
        x, y, tallest, placed = 0, y + 1, 0, []
        for panel in row.panels:
            number += 1
            if x + panel.width > WIDTH:
                x, y, tallest = 0, y + tallest, 0
            placed.append(Place(panel, number, x, y))
            x, tallest = x + panel.width, max(tallest, panel.height)
        y += tallest
        yield row, own, head, placed
