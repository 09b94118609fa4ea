"""What an alert is. The catalogue is `ledgerops.mixin.alerts.ALERTS`.

An alert is written for a site (its selector, objectives and windows), so its expression is a function. Its promtool
cases are written beside it: a case is a handful of series and whether the alert fires at a moment.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from ledgerops.mixin.site import Site
from ledgerops.model.finding import Severity

# What each alert must be shown to do. Where a query has no way to restart or vanish, the alert says so by `without`.
Behaviour = Literal["fires", "stays quiet", "resolves", "series vanishes", "query restarts"]

Page = Literal["ledgerops-query", "ledgerops-fleet", "ledgerops-state", "ledgerops-resources"]


@dataclass(frozen=True, slots=True)
class Case:
    """Series in promtool's notation, one value every 15 s from 0, and whether the alert fires `at` (seconds)."""

    shows: Behaviour
    title: str
    series: Mapping[str, str]
    at: int
    fires: bool


def of(name: str, **labels: str) -> str:
    """A series with labels, in a case."""
    text = ", ".join(f'{label}="{value}"' for label, value in labels.items())
    return f"{name}{{{text}}}"


@dataclass(frozen=True, slots=True)
class Alert:
    """One alert. Severity by what to do: critical = act now, warning = act today, info = know it."""

    name: str  # CamelCase, at most 40 characters
    severity: Severity
    expression: Callable[[Site], str]
    hold: float  # seconds for which it must be true: two scrapes and a trigger interval at least
    summary: str  # one constant sentence
    description: str  # template: what, how much, beyond which limit
    cases: tuple[Case, ...]
    runbook: str = ""  # docstring with Meaning, Impact, Diagnosis, Mitigation; that of a rule is in its module
    keep: float = 60.0  # seconds for which it goes on firing after it was true last: one bad scrape does not resolve it
    page: Page = "ledgerops-query"
    rule: str | None = None  # the diagnosis rule that sees the same
    inhibits: tuple[str, ...] = ()  # alerts that say nothing new while this one fires for the same query
    without: tuple[Behaviour, ...] = field(default=())
    of_query: bool = True  # has the label `query`
    names_cause: bool = False  # has the root cause of its query as an annotation
    of_cause: bool = False  # says that its rule is a root cause, with the first step that fits the query

    @property
    def problem(self) -> str:
        """The name of its page in docs/problems: that of its rule, or `LedgerQueryDown` -> `query-down`."""
        return self.rule or re.sub(r"(?<=[a-z])(?=[A-Z])", "-", self.name.removeprefix("Ledger")).lower()
