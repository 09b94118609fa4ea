"""What a scrape reads: every family of every query at one moment, made by the worker and never changed after."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple

from ledgerops.metrics import DRIVER_METRICS, QUERY_METRICS, VERDICT_METRICS
from ledgerops.metrics.model import HistogramTotal, Labels, Metric
from ledgerops.model.finding import Verdict
from ledgerops.model.records import Host
from ledgerops.runtime.registry import Fleet, QueryState
from ledgerops.signals.query_view import QueryView

LABEL_LENGTH = 256  # Prometheus refuses a whole scrape whose label values are longer than its limit
LABELS = 10_000  # sets of label values that are remembered as they are published: each batch has the same ones again
ORDERS = 1_000  # families of them whose order is remembered
DIGITS = re.compile(r"(\d+)")


class Family(NamedTuple):
    """One metric with its series in a stable order. For an `age` metric the values are instants."""

    metric: Metric[Any]
    series: Sequence[tuple[Labels, float]] = ()
    histogram: HistogramTotal | None = None

    @property
    def size(self) -> int:
        """How many series it exports."""
        return len(self.histogram.counts) + 2 if self.histogram else len(self.series)


@dataclass(frozen=True, slots=True)
class QuerySnapshot:
    """One query. `state` is a copy that nobody changes: displays derive from it what they need."""

    query: str
    at: float
    families: Mapping[str, Family]  # by metric name
    dropped: int  # series over the budget
    state: QueryState


@dataclass(frozen=True, slots=True)
class Snapshot:
    """All queries of the driver, and its machine."""

    at: float = 0.0
    queries: Mapping[str, QuerySnapshot] = field(default_factory=dict)
    hosts: Sequence[Host] = ()
    driver: Mapping[str, Family] = field(default_factory=dict)

    def fleet(self) -> Fleet:
        """The same as a fleet, for whoever wants views; it is not to be changed."""
        fleet = Fleet(_no_judge)
        fleet.queries = {name: query.state for name, query in self.queries.items()}
        fleet.hosts.extend(self.hosts)
        return fleet

    def verdicts(self) -> list[Verdict]:
        """The newest verdict on each query, by name."""
        found = (self.queries[name].state.verdict for name in sorted(self.queries))
        return [verdict for verdict in found if verdict is not None]


def snapshot_query(
    state: QueryState, view: QueryView, budget: int, failed: Callable[[str, Exception], None]
) -> QuerySnapshot:
    """One query's families at `view.now`, at most `budget` series of them. `failed(metric, error)` hears of readers
    that raise: the family is left out."""
    families = [
        *_families(QUERY_METRICS, view, state, failed),
        *(_families(VERDICT_METRICS, state.verdict, state, failed) if state.verdict else ()),
    ]
    if view.history.ended is not None:
        families = [family for family in families if family.metric.survives]
    kept, dropped = _fit(families, budget)
    return QuerySnapshot(view.query, view.now, {family.metric.name: family for family in kept}, dropped, _frozen(state))


def snapshot_driver(host: Host | None, failed: Callable[[str, Exception], None]) -> dict[str, Family]:
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


def series_of(metric: Metric[Any], series: Mapping[Labels, float]) -> Sequence[tuple[Labels, float]]:
    """The series that can be published, in a stable order: numbers only, labels of bounded length."""
    return tuple(
        [
            (clean, float(value))
            for clean, labels in _ordered(tuple(series), len(metric.labels))
            if math.isfinite(value := series[labels]) or (metric.age and value > 0)
        ]
    )


@lru_cache(maxsize=ORDERS)
def _ordered(all_labels: tuple[Labels, ...], width: int) -> Sequence[tuple[Labels, Labels]]:
    """Labels as they are published, and as they were given, in the order of the former."""
    clean = {_clean(labels): labels for labels in all_labels if len(labels) == width}
    return sorted(clean.items(), key=lambda item: _natural(item[0])) if len(clean) > 1 else tuple(clean.items())


@lru_cache(maxsize=LABELS)
def _clean(labels: Labels) -> Labels:
    return tuple(clean_label(value) for value in labels)


def clean_label(value: str) -> str:
    """A label value that can be encoded and is not too long."""
    if len(value) > LABEL_LENGTH:
        value = value[:LABEL_LENGTH]
    return value if value.isascii() else value.encode("utf-8", "replace").decode("utf-8")


@lru_cache(maxsize=LABELS)
def _natural(labels: Labels) -> list[tuple[int, int | str]]:
    """Partition 10 comes after partition 9."""
    parts = [part for label in labels for part in DIGITS.split(label) if part]
    return [(0, int(part)) if part.isdecimal() else (1, part) for part in parts]


def _fit(families: Sequence[Family], budget: int) -> tuple[list[Family], int]:
    """Cuts the widest families until the budget holds: narrow ones stay whole, wide ones keep the same first series.

    The limit is the same for all that are cut, so the partitions that remain are the same in each of them.
    """
    total = sum(family.size for family in families)
    if total <= budget:
        return list(families), 0
    limit, left = 0, budget
    sizes = sorted(family.size for family in families)
    for index, size in enumerate(sizes):
        limit = left // (len(sizes) - index)
        if size > limit:
            break
        left -= size
    kept = [
        family if len(family.series) <= limit else family._replace(series=family.series[:limit])
        for family in families
        if (family.size <= limit or family.histogram is None) and limit > 0
    ]
    return kept, total - sum(family.size for family in kept)


def _frozen(state: QueryState) -> QueryState:
    still = copy(state)
    still.history = state.history.copy()
    still.tally = copy(state.tally)
    still.tally.counters = {name: dict(totals) for name, totals in state.tally.counters.items()}
    return still


def _no_judge() -> Any:
    raise AssertionError("a snapshot is not judged again")
