"""What a scrape reads: every family of every query at one moment, made by the worker and never changed after."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from typing import Any

from ledgerops.metrics import DRIVER_METRICS, QUERY_METRICS, VERDICT_METRICS
from ledgerops.metrics.model import HistogramTotal, Metric
from ledgerops.model.finding import Verdict
from ledgerops.model.records import Host
from ledgerops.runtime.budget import fair_limit, fit_families
from ledgerops.runtime.family import Family, series_of
from ledgerops.runtime.registry import QueryState
from ledgerops.signals.query_view import QueryView

ENDED_TOTALS_SECONDS = 900.0  # some scrapes, and the windows of the rates over them


@dataclass(frozen=True, slots=True)
class QuerySnapshot:
    """One query. `state` is a copy that nobody changes: displays derive from it what they need."""

    query: str
    at: float
    families: Mapping[str, Family]  # by metric name
    dropped: int  # series over the budget
    state: QueryState

    @property
    def size(self) -> int:
        """How many series it exports, without those that no budget cuts."""
        return sum(family.size for family in self.families.values() if not family.metric.unbudgeted)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """All queries of the driver, and its machine."""

    at: float = 0.0
    queries: Mapping[str, QuerySnapshot] = field(default_factory=dict)
    hosts: Sequence[Host] = ()
    driver: Mapping[str, Family] = field(default_factory=dict)

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


def snapshot_query(
    state: QueryState,
    view: QueryView,
    budget: int,
    failed: Callable[[str, Exception], None],
    ended_totals_seconds: float = ENDED_TOTALS_SECONDS,
) -> QuerySnapshot:
    """One query's families at `view.now`, at most `budget` series of them.

    `failed(metric, error)` is called for a reader that raises: its family is left out. The totals of a query that has
    ended stay for `ended_totals_seconds`, so that Prometheus sees the last batches.
    """
    families = [
        *_families(QUERY_METRICS, view, state, failed),
        *(_families(VERDICT_METRICS, state.verdict, state, failed) if state.verdict else ()),
    ]
    ended = view.history.ended
    if ended is not None:
        stay = ("counter", "histogram") if view.now - ended.at < ended_totals_seconds else ()
        families = [family for family in families if family.metric.survives or family.metric.kind in stay]
    kept, dropped = fit_families(families, budget)
    return QuerySnapshot(view.query, view.now, {family.metric.name: family for family in kept}, dropped, _frozen(state))


def fit_queries(
    queries: Mapping[str, QuerySnapshot], budget: int, known: dict[str, tuple[QuerySnapshot, int, QuerySnapshot]]
) -> dict[str, QuerySnapshot]:
    """The queries, the widest cut until all together have at most `budget` series.

    `known` holds what was cut before, for queries that have not changed since.
    """
    sizes = {name: query.size for name, query in queries.items()}
    if sum(sizes.values()) <= budget:
        known.clear()
        return dict(queries)
    limit = fair_limit(list(sizes.values()), budget)
    for name in known.keys() - queries.keys():
        del known[name]
    fitted = {}
    for name, query in queries.items():
        if sizes[name] <= limit:
            fitted[name] = query
            continue
        if name not in known or known[name][0] is not query or known[name][1] != limit:
            kept, dropped = fit_families(list(query.families.values()), limit)
            families = {family.metric.name: family for family in kept}
            known[name] = query, limit, replace(query, families=families, dropped=query.dropped + dropped)
        fitted[name] = known[name][2]
    return fitted


def snapshot_driver(host: Host | None, failed: Callable[[str, Exception], None]) -> dict[str, Family]:
    """The families of the driver's machine by metric name, none without a `host`; `failed` as in `snapshot_query`."""
    return {family.metric.name: family for family in _families(DRIVER_METRICS, host, None, failed)} if host else {}


def _families(
    metrics: Iterable[Metric[Any]], subject: object, state: QueryState | None, failed: Callable[[str, Exception], None]
) -> Iterator[Family]:
    for metric in metrics:
        try:
            if metric.kind == "histogram":
                total = state.tally.histograms.get(metric.name) if state else None
                if total is not None:
                    frozen = HistogramTotal(total.bounds, list(total.counts), total.sum, total.exemplar)
                    yield Family(metric, histogram=frozen)
                continue
            if metric.read is not None:
                series = metric.read(subject)
            else:
                series = state.tally.counters.get(metric.name, {}) if state else {}
            if series:
                yield Family(metric, series_of(metric, series))
        except Exception as error:
            failed(metric.name, error)


def _frozen(state: QueryState) -> QueryState:
    still = copy(state)
    still.history = state.history.copy()
    still.tally = copy(state.tally)
    still.tally.counters = {name: dict(totals) for name, totals in state.tally.counters.items()}
    return still
