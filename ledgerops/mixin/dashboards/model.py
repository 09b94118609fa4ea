"""What a dashboard consists of: pages of rows of panels, as data. `build` makes Grafana's JSON of them."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Literal

from ledgerops.mixin.site import Site

PanelKind = Literal["timeseries", "stat", "table", "state-timeline", "heatmap", "bargauge"]
Cell = Literal["text", "background", "gauge", "hidden"]

# readable by people who confuse red and green, on a light and on a dark page: Okabe and Ito, "Color Universal Design"
GOOD, WARN, BAD, COLD, UNKNOWN = "#009E73", "#E69F00", "#D55E00", "#56B4E9", "#8E8E8E"
BUDGET = "[budget]"  # in an expression: stands for the share of the time that the site's objective allows to be bad

Limit = float | Callable[[Site], float]  # a number, or what the site says
ELAPSED = "dtdurations"  # Grafana's unit of seconds in words


@dataclass(frozen=True, slots=True)
class Target:
    """One PromQL expression; `legend` is a template of labels."""

    expr: str
    legend: str = "{{query}}"


@dataclass(frozen=True, slots=True)
class Link:
    """What a click opens: `url` is a template in which `{problems}` stands for the address of their pages."""

    title: str
    url: str


@dataclass(frozen=True, slots=True)
class Column(Target):
    """A target of a table. `legend` is the column's title, `pixels` its width; limits as of a panel.

    `names` are the words for its values, `colour:word`; one column of each table has no width and takes what is left.
    """

    unit: str = "short"
    warn: Limit | None = None
    bad: Limit | None = None
    low: bool = False
    names: tuple[tuple[str, str], ...] = ()
    cell: Cell = "text"
    pixels: int | None = None


def elapsed(expression: str, title: str) -> Column:
    """A column of seconds that reads as "2 minutes, 39 seconds": Grafana's `s` would say 2.65 mins."""
    return Column(f"round({expression})", title, unit=ELAPSED, pixels=170)


@dataclass(frozen=True, slots=True)
class Label:
    """A column of a table that shows a label: its title, its width in pixels, and what a click on it opens.

    A hidden one is there for links of others.
    """

    name: str
    title: str
    pixels: int | None = None
    links: tuple[Link, ...] = ()
    wrap: bool = False
    hidden: bool = False


@dataclass(frozen=True, slots=True)
class Panel:
    """One panel. `help` describes what is shown and which values are good, `empty` what it means when nothing is shown.

    From `warn` and `bad` on it is drawn as a warning and as bad, or below them with `low`; see `limits`.
    """

    title: str
    targets: tuple[Target, ...]
    unit: str
    help: str
    kind: PanelKind = "timeseries"
    warn: Limit | None = None
    bad: Limit | None = None
    low: bool = False
    width: int = 12  # half of the page
    height: int = 8
    stacked: bool = False  # only parts of one whole
    least: float | None = 0.0  # lower end of the axis
    most: float | None = None
    names: tuple[tuple[str, str], ...] = ()  # words for its values: `colour:word`
    link: str | None = None  # uid of the page that a click on a series opens
    labels: tuple[Label, ...] = ()  # of a table, in their order
    order: tuple[str, ...] = ()  # of a table: titles of its sorting columns, largest value first (`low`: smallest)
    show: Literal["value", "name", "both"] = "value"  # of a stat
    empty: str = ""
    waits: str | None = None  # what must happen before it shows data: a fault, a kind of query
    drill: str = ""  # the recording in which that happens, so that a test can see it speak


@dataclass(frozen=True, slots=True)
class Row:
    """`title` is the question that its panels answer."""

    title: str
    panels: tuple[Panel, ...]
    collapsed: bool = False


@dataclass(frozen=True, slots=True)
class Page:
    """One dashboard: its address is /d/`uid`, `help` its description."""

    uid: str
    title: str
    help: str
    rows: tuple[Row, ...]
    single: bool = False  # shows one query of one application, not several
    load: bool = False  # shows the load generator, too, whose series have a job of their own; not in the daily menu


# an application of unknown name has series without `app`: the variable's "All" is `.*`, which matches them
SELECT = 'job=~"$job", app=~"$app", instance=~"$instance", query=~"$query"'
DRIVER = 'job=~"$job", app=~"$app", instance=~"$instance"'
PLAN = 'job=~"$job", instance=~"$instance", plan=~"$plan"'
RECORDED = 'job=~"$job", app=~"$app", query=~"$query"'  # recording rules keep no instance
# alerts of drivers have no query, and those of a whole scrape job neither query nor application
ALERTING = 'job=~"$job", app=~"$app|", query=~"$query|"'
EACH = "job, app, instance, query"  # one query of one driver
ONE = "job, app, query"  # one query, on whichever driver it runs
EACH_DRIVER = "job, app, instance"


def _selector(matchers: str, metric: str, *more: str) -> str:
    return f"{metric}{{{', '.join((matchers, *more))}}}"


q = partial(_selector, SELECT)  # of a query's metric
d = partial(_selector, DRIVER)  # of a driver's
g = partial(_selector, PLAN)  # of a load generator's
recorded = partial(_selector, RECORDED)  # of a recording rule


def rate(selector: str) -> str:
    """PromQL: the increase a second of each counter that is selected, over the interval that Grafana chooses."""
    return f"rate({selector}[$__rate_interval])"


def by(function: str, labels: str, expression: str) -> str:
    """PromQL: an aggregation such as `sum`, with one value for each set of the labels (separated by commas)."""
    return f"{function} by ({labels}) ({expression})"


def quantile(share: float, labels: str, buckets: str) -> str:
    """Of a histogram, for each set of the labels, `le` among them."""
    return f"histogram_quantile({share:g}, {by('sum', labels, rate(buckets))})"


def over(part: str, whole: str) -> str:
    """The part of the whole; of a whole that is 0 there is none."""
    return f"{part} / ({whole} > 0)"


def per_second(counter: str, legend: str = "{{query}}", labels: str = ONE) -> Target:
    """How fast a counter grows, for each set of the labels."""
    return Target(by("sum", labels, rate(counter)), legend)


def counted(counter: str, labels: str, span: str = "1h") -> str:
    """How many events a counter saw within a span: whole numbers, where `increase` extrapolates."""
    return f"round({by('sum', labels, f'increase({counter}[{span}])')})"


def worst(expression: str, labels: str, least: bool = False, most: int = 5) -> str:
    """Of the series of an expression the `most` with the largest value within the page's time, or with the least.

    Below a plot of half the page there is room for the names of five."""
    pick, peak = ("bottomk", "min_over_time") if least else ("topk", "max_over_time")
    return f"{expression} and on ({labels}) {pick}({most}, {peak}(({expression})[$__range:] @ end()))"


def largest(function: str, labels: str, expression: str, legend: str = "{{query}}", most: int = 5) -> Target:
    """The `worst` series of an aggregation `by` the labels."""
    return Target(worst(by(function, labels, expression), labels, most=most), legend)
