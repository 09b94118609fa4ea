"""What a scrape reads: every family of every query at one moment, made by the worker and never changed after."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
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


@dataclass(frozen=True, slots=True)
class QuerySnapshot:
    """One query. `state` is a copy that does not change: displays derive from it what they need."""

    query: str
    at: float
    families: Mapping[str, Family]  # by metric name
    dropped: int  # series over the budget
    state: QueryState
    totalled: Mapping[str, Family] = field(default_factory=dict)  # of its running totals, before any was cut
    size: int = field(init=False)  # series that it exports, without those that no budget cuts

    def __post_init__(self) -> None:
        size = sum(family.size for family in self.families.values() if not family.metric.unbudgeted)
        object.__setattr__(self, "size", size)


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
    state: QueryState, view: QueryView, budget: int, failed: Callable[[str, Exception], None],
    ended_totals_seconds: float = ENDED_TOTALS_SECONDS, before: QuerySnapshot | None = None,
) -> QuerySnapshot:  # fmt: skip
    """One query's families at `view.now`, at most `budget` series of them.

    `failed(metric, error)` is called for a reader that raises: its family is left out. The totals of a query that has
    ended stay for `ended_totals_seconds`, so that Prometheus sees the last batches. The families of the totals are
    taken from the snapshot `before` if nothing was added since.
    """
    verdict, totals = state.verdict, state.totals.copy()
    if before is not None and before.state.totals is totals:
        totalled = before.totalled
    else:
        totalled = _families(QUERY_METRICS, _totalled, totals, failed)
    judged = _families(VERDICT_METRICS, _read, verdict, failed) if verdict is not None else {}
    families = list({**totalled, **_families(QUERY_METRICS, _read, view, failed), **judged}.values())
    ended = view.history.ended
    if ended is not None:
        kinds = ("counter", "histogram") if view.now - ended.at < ended_totals_seconds else ()
        families = [family for family in families if family.metric.survives or family.metric.kind in kinds]
    kept, dropped = fit_families(families, budget)
    frozen = copy(state)
    frozen.history, frozen.totals = state.history.copy(), totals
    by_name = {family.metric.name: family for family in kept}
    return QuerySnapshot(view.query, view.now, by_name, dropped, frozen, totalled)


def fit_queries(
    queries: Mapping[str, QuerySnapshot], budget: int, known: dict[str, tuple[QuerySnapshot, int, QuerySnapshot]]
) -> dict[str, QuerySnapshot]:
    """The queries, the widest cut until all together have at most `budget` series. `known` holds what was cut before,
    for queries that have not changed since."""
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
    return _families(DRIVER_METRICS, _read, host, failed) if host is not None else {}


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
    family where it is known. Label values are clean. Raises what a self metric's `read` raises; the other families
    were read when the snapshot was made.
    """
    of_driver: SharedLabels = (("app", clean_label(app)),) if app else ()
    queries = sorted((clean_label(name), query.families) for name, query in snapshot.queries.items())
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
