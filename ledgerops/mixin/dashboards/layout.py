"""What a page has besides its panels, in either schema: variables, annotations, and the place of each panel."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from ledgerops.mixin.dashboards.model import BAD, COLD, WARN, Page, Panel, Row, by, d, q

WIDTH = 24
DRILL_APP = "ledgerops drill"  # name of the application that a drill's driver is; the name of the drill is not in it
PAUSE = "1d"  # a query that was away for longer begins anew: no restart is marked


class Variable(NamedTuple):
    """A choice at the top of the page; `query` is Grafana's."""

    name: str
    query: str
    many: bool = True

    @property
    def label(self) -> str:
        return self.name.capitalize()


class Mark(NamedTuple):
    """Marks on the time axis of every panel: moments, or spans while `expr` gives a value."""

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
MARKS = (
    Mark("Firing alerts", 'ALERTS{alertstate="firing", job=~"$job", severity!="info"}', "{{alertname}} {{query}}", BAD),
    Mark(
        "Restarts",
        # the newest start is later than that of a moment ago, or of before the pause, on whichever driver
        f"{by('max', 'job, query', STARTED)} > "
        + by("max", "job, query", f"last_over_time({STARTED}[{PAUSE}] offset $__rate_interval)"),
        "restart {{query}}",
        COLD,
    ),
    Mark(
        "Drills",
        "max by (instance) (" + d("ledgerops_query_info", f'app_name="{DRILL_APP}"') + ")",
        "drill on {{instance}}",
        COLD,
    ),
    Mark("Load plans", "max by (plan) (ledgerops_load_planned_rate) > 0", "load plan {{plan}}", WARN),
)


def variables(page: Page) -> Iterator[Variable]:
    """Besides the data source."""
    both = '__name__=~"ledgerops_build_info|ledgerops_load_valid"'  # what every process that the page shows has
    born = f"{{{both}}}" if page.plans else "ledgerops_build_info"
    chosen = f'{{{both}, job=~"$job"}}' if page.plans else 'ledgerops_build_info{job=~"$job"}'
    drivers = 'job=~"$job", instance=~"$instance"'
    yield Variable("job", f"label_values({born}, job)")
    yield Variable("instance", f"label_values({chosen}, instance)")
    yield Variable("query", f"label_values(ledgerops_query_expected{{{drivers}}}, query)", many=not page.single)
    if page.plans:
        yield Variable("plan", f"label_values(ledgerops_load_valid{{{drivers}}}, plan)")


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
