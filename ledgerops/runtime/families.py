"""All families that a driver publishes, once: the text of /metrics and the Collector for prometheus_client are made
from the same list, so that no family is in one of them only."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from ledgerops.metrics import DRIVER_METRICS, QUERY_METRICS, SELF_METRICS, VERDICT_METRICS
from ledgerops.metrics.identity import ACTIVE, EXPECTED
from ledgerops.metrics.model import Metric
from ledgerops.model.self_counts import SelfStats
from ledgerops.runtime.family import Family, clean_label, series_of
from ledgerops.runtime.snapshot import Snapshot

PER_QUERY: tuple[Metric[Any], ...] = (*QUERY_METRICS, *VERDICT_METRICS)
# what is said of a query that is expected and has not run
ABSENT = {ACTIVE.name: Family(ACTIVE, (((), 0.0),)), EXPECTED.name: Family(EXPECTED, (((), 1.0),))}


class Published(NamedTuple):
    """One family. `parts` has its series by query, or one part under None where they belong to no query."""

    metric: Metric[Any]
    parts: Sequence[tuple[str | None, Family]]


def published(snapshot: Snapshot, stats: SelfStats, expected: Iterable[str] = ()) -> Iterator[Published]:
    """The families of the queries, of the driver's machine, and of ledgerops itself, in the order of the catalogue.

    `expected` names queries that are reported even when they never ran; label values are clean. Raises what a self
    metric's `read` raises; the other families were read when the snapshot was made.
    """
    queries = sorted((clean_label(name), query.families) for name, query in snapshot.queries.items())
    known = {name for name, _ in queries}
    missing = sorted({clean_label(name) for name in expected} - known)
    for metric in PER_QUERY:
        name = metric.name
        parts = [(query, families[name]) for query, families in queries if name in families]
        if name in ABSENT:
            done = {query for query, _ in parts}
            wanted = sorted({clean_label(each) for each in expected} - done) if metric is EXPECTED else missing
            parts += [(query, ABSENT[name]) for query in wanted]
        if parts:
            yield Published(metric, parts)
    for metric in DRIVER_METRICS:
        if metric.name in snapshot.driver:
            yield Published(metric, [(None, snapshot.driver[metric.name])])
    for own in SELF_METRICS:
        assert own.read is not None
        series = series_of(own, own.read(stats))
        if series:
            yield Published(own, [(None, Family(own, series))])
