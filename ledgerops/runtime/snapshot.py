"""What a scrape reads: every family of every query at one moment, of copies that the worker made and never changes."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

from ledgerops.metrics import DRIVER_METRICS, QUERY_METRICS, SELF_METRICS, VERDICT_METRICS, RunningTotals
from ledgerops.metrics.identity import ACTIVE, EXPECTED
from ledgerops.metrics.model import Metric
from ledgerops.metrics.self_watch import SelfStats
from ledgerops.model.finding import Verdict
from ledgerops.model.records import Host
from ledgerops.runtime.family import Family, clean_label, fair_limit, fit_families, series_of
from ledgerops.runtime.registry import QueryState
from ledgerops.signals.query_view import QueryView

ENDED_TOTALS_SECONDS = 900.0  # covers some scrapes, and the windows of the rates over them
PER_QUERY: tuple[Metric[Any], ...] = (*QUERY_METRICS, *VERDICT_METRICS)
# the families of a query that is expected and has not run
ABSENT = {ACTIVE.name: Family(ACTIVE, (((), 0.0),)), EXPECTED.name: Family(EXPECTED, (((), 1.0),))}


class Exported(NamedTuple):
    """What is exported of one query: families by metric name, and how many series were over the budget."""

    families: Mapping[str, Family]
    dropped: int

    @property
    def size(self) -> int:
        """Its series, without those that no budget cuts."""
        return sum(family.size for family in self.families.values() if not family.metric.unbudgeted)

    def within(self, limit: int) -> Exported:
        """Cut to so many series."""
        kept, dropped = fit_families(list(self.families.values()), limit)
        return Exported({family.metric.name: family for family in kept}, self.dropped + dropped)


class QuerySnapshot:
    """One query at the moment of `view`. `state` is a copy that does not change: displays derive from it what they
    need.

    Its families are made when they are first read, by whoever reads them: scrapes are fewer than batches. They have at
    most `budget` series. `failed(metric, error)` is called for a reader that raises: its family is left out. The totals
    of a query that has ended stay for `ended_totals_seconds`, so that Prometheus sees the last batches.
    """

    def __init__(
        self, state: QueryState, view: QueryView, budget: int, failed: Callable[[str, Exception], None],
        ended_totals_seconds: float = ENDED_TOTALS_SECONDS,
    ) -> None:  # fmt: skip
        self.query, self.at = view.query, view.now
        self.state = copy(state)
        self.state.history, self.state.totals = state.history.copy(), state.totals.copy()
        self._view = view.of_copy(self.state.history)
        self._budget, self._failed, self._ended_totals_seconds = budget, failed, ended_totals_seconds
        self._cut: tuple[int, Exported] | None = None  # the newest answer of `within`

    @cached_property
    def exported(self) -> Exported:
        """All that its budget allows."""
        view, verdict, failed = self._view, self.state.verdict, self._failed
        totals = self.state.totals
        if totals.families is None:
            totals.families = _families(QUERY_METRICS, _totalled, totals, failed)
        judged = _families(VERDICT_METRICS, _read, verdict, failed) if verdict is not None else {}
        families = {**totals.families, **_families(QUERY_METRICS, _read, view, failed), **judged}
        ended = view.history.ended
        if ended is not None:
            kinds = ("counter", "histogram") if view.now - ended.at < self._ended_totals_seconds else ()
            families = {
                name: family
                for name, family in families.items()
                if family.metric.survives or family.metric.kind in kinds
            }
        return Exported(families, 0).within(self._budget)

    def within(self, limit: int) -> Exported:
        """What is left of `exported` with at most so many series; made once, as long as the limit is the same."""
        if self._cut is None or self._cut[0] != limit:
            self._cut = limit, self.exported.within(limit)
        return self._cut[1]


@dataclass(frozen=True)
class Snapshot:
    """All queries of the driver, and its machine. `budget` is for the series of all, `failed` as in QuerySnapshot."""

    at: float = 0.0
    queries: Mapping[str, QuerySnapshot] = field(default_factory=dict)
    hosts: Sequence[Host] = ()
    budget: float = math.inf
    failed: Callable[[str, Exception], None] = lambda name, error: None

    def states(self) -> Mapping[str, QueryState]:
        """All queries by name."""
        return {name: query.state for name, query in self.queries.items()}

    def view(self, state: QueryState, now: float) -> QueryView:
        """The signals of one query at an instant (seconds since the epoch)."""
        others = [other.state.history for other in self.queries.values() if other.state is not state]
        return QueryView(state.history, now, self.hosts, others)

    def verdicts(self) -> list[Verdict]:
        """The newest verdict on each query, by name."""
        found = (self.queries[name].state.verdict for name in sorted(self.queries))
        return [verdict for verdict in found if verdict is not None]

    @cached_property
    def driver(self) -> Mapping[str, Family]:
        """The families of the driver's machine by metric name; none before it was looked at."""
        return _families(DRIVER_METRICS, _read, self.hosts[-1], self.failed) if self.hosts else {}

    @cached_property
    def exported(self) -> Mapping[str, Exported]:
        """What is exported of each query, the widest cut until all together are within the budget."""
        whole = {name: query.exported for name, query in self.queries.items()}
        sizes = {name: each.size for name, each in whole.items()}
        left = self.budget - sum(family.size for family in self.driver.values())
        if sum(sizes.values()) <= left:
            return whole
        limit = fair_limit(list(sizes.values()), int(left))
        return {
            name: each if sizes[name] <= limit else self.queries[name].within(limit) for name, each in whole.items()
        }


def _families(
    metrics: Iterable[Metric[Any]], make: Callable[[Metric[Any], Any], Family | None], subject: object,
    failed: Callable[[str, Exception], None],
) -> dict[str, Family]:  # fmt: skip
    """The families that `make` gives of a subject, by metric name."""
    found = {}
    for metric in metrics:
        try:
            family = make(metric, subject)
        except Exception as error:
            failed(metric.name, error)
        else:
            if family is not None:
                found[metric.name] = family
    return found


def _read(metric: Metric[Any], subject: object) -> Family | None:
    series = metric.read(subject) if metric.read is not None else {}
    return Family(metric, series_of(metric, series)) if series else None


def _totalled(metric: Metric[Any], totals: RunningTotals) -> Family | None:
    """The family of a metric that is summed up over batches; `totals` may not change afterwards."""
    if metric.name in totals.histograms:
        return Family(metric, histogram=totals.histograms[metric.name])
    series = totals.counters.get(metric.name)
    return Family(metric, series_of(metric, series)) if series else None


#: names and values of the labels that a metric does not list: query and application
SharedLabels = tuple[tuple[str, str], ...]


class Published(NamedTuple):
    """One family. `parts` has its series by the labels that the metric does not list, the same names in each part."""

    metric: Metric[Any]
    parts: Sequence[tuple[SharedLabels, Family]]


def published(
    snapshot: Snapshot, stats: SelfStats, expected: Iterable[str] = (), app: str | None = None
) -> Iterator[Published]:
    """The families of the queries, of the driver's machine, and of ledgerops itself, in the order of the catalogue.

    The text of /metrics and the Collector for prometheus_client are made from it, so that no family is in one of them
    only.

    `expected` names queries that are reported even when they never ran; `app` is the application, a label of every
    family where it is known. Label values are clean. Raises what a self metric's `read` raises.
    """
    of_driver: SharedLabels = (("app", clean_label(app)),) if app else ()
    queries = sorted((clean_label(name), each.families) for name, each in snapshot.exported.items())
    known = {name for name, _ in queries}
    wanted = {clean_label(name) for name in expected}
    labels = {name: (("query", name), *of_driver) for name in known | wanted}
    for metric in PER_QUERY:
        name = metric.name
        parts = [(query, families[name]) for query, families in queries if name in families]
        if name in ABSENT:
            done = {query for query, _ in parts}
            missing = wanted - (done if metric is EXPECTED else known)
            parts += [(query, ABSENT[name]) for query in sorted(missing)]
        if parts:
            yield Published(metric, [(labels[query], family) for query, family in parts])
    for metric in DRIVER_METRICS:
        if metric.name in snapshot.driver:
            yield Published(metric, [(of_driver, snapshot.driver[metric.name])])
    for own in SELF_METRICS:
        assert own.read is not None
        series = series_of(own, own.read(stats))
        if series:
            yield Published(own, [(of_driver, Family(own, series))])
