"""What a dashboard consists of: pages of rows of panels, as data. `build` makes Grafana's JSON of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from ledgerops.mixin.site import Site

Kind = Literal["timeseries", "stat", "table", "state-timeline", "heatmap", "bargauge"]

# readable by people who confuse red and green: Okabe and Ito, "Color Universal Design"
GOOD, WARN, BAD, COLD = "#009E73", "#E69F00", "#D55E00", "#56B4E9"
BUDGET = "[budget]"  # in an expression: stands for the share of the time that the site's objective allows to be bad

Limit = float | Callable[[Site], float]  # a number, or what the site says


@dataclass(frozen=True, slots=True)
class Target:
    """One PromQL expression; `legend` is a template of labels."""

    expr: str
    legend: str = "{{query}}"


@dataclass(frozen=True, slots=True)
class Column(Target):
    """A target of a table that has a unit, limits or words of its own; `legend` is the column's name."""

    unit: str = "short"
    warn: Limit | None = None
    bad: Limit | None = None
    low: bool = False
    names: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Panel:
    """One panel. `help` says what is shown and what good looks like.

    From `warn` and `bad` on it is drawn as a warning and as bad, or below them with `low`; see `limits`.
    """

    title: str
    targets: tuple[Target, ...]
    unit: str
    help: str
    kind: Kind = "timeseries"
    warn: Limit | None = None
    bad: Limit | None = None
    low: bool = False
    width: int = 8
    height: int = 8
    stacked: bool = False
    least: float | None = 0.0  # lower end of the axis
    most: float | None = None
    names: tuple[tuple[str, str], ...] = ()  # of a timeline's values: `colour:word`
    link: str | None = None  # uid of the page that a click on a query opens
    hides: tuple[str, ...] = ()  # of a table: columns that say nothing
    waits: str | None = None  # what must happen before it shows data: a fault, a kind of query
    drill: str = ""  # the drill in which that happens, so that a test can see it speak


@dataclass(frozen=True, slots=True)
class Row:
    title: str
    panels: tuple[Panel, ...]
    collapsed: bool = False


@dataclass(frozen=True, slots=True)
class Page:
    uid: str
    title: str
    help: str
    rows: tuple[Row, ...]
    single: bool = False  # shows one query, not several
    plans: bool = False  # shows the load generator, too, whose series have a job of their own


SELECT = 'job=~"$job", instance=~"$instance", query=~"$query"'
DRIVER = 'job=~"$job", instance=~"$instance"'
PLAN = f'{DRIVER}, plan=~"$plan"'


def q(metric: str, *more: str) -> str:
    """A selector of a query's metric."""
    return f"{metric}{{{', '.join((SELECT, *more))}}}"


def d(metric: str, *more: str) -> str:
    """A selector of a driver's metric."""
    return f"{metric}{{{', '.join((DRIVER, *more))}}}"


def g(metric: str, *more: str) -> str:
    """A selector of a load generator's metric."""
    return f"{metric}{{{', '.join((PLAN, *more))}}}"


def rate(selector: str) -> str:
    return f"rate({selector}[$__rate_interval])"


def by(function: str, labels: str, expression: str) -> str:
    return f"{function} by ({labels}) ({expression})"


def quantile(share: float, labels: str, buckets: str) -> str:
    """Of a histogram, for each set of the labels, `le` among them."""
    return f"histogram_quantile({share:g}, {by('sum', labels, rate(buckets))})"


def over(part: str, whole: str) -> str:
    """The part of the whole; of a whole that is 0 there is none."""
    return f"{part} / ({whole} > 0)"


def pace(counter: str, legend: str = "{{query}}", labels: str = "query") -> Target:
    """How fast a counter grows, for each set of the labels."""
    return Target(by("sum", labels, rate(counter)), legend)
