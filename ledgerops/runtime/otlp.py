"""A snapshot's families as OTLP export requests, and root causes as log records: plain data in the shape of OTLP/JSON.

Names stay those of /metrics: Prometheus' receiver adds a unit or `_total` only to a name that lacks it. A series that
has ended is sent once more without a value, so that a gauge does not outlive what it measured.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from functools import lru_cache
from itertools import groupby, islice
from typing import Any, NamedTuple

from ledgerops.metrics import DRIVER_METRICS
from ledgerops.metrics.model import HistogramTotal, Metric
from ledgerops.model.finding import Finding, Severity, Verdict
from ledgerops.runtime.family import MAX_LABEL_SETS, clean_label
from ledgerops.runtime.snapshot import Published

SERVICE = "ledgerops"  # Prometheus makes the label `job` of it, which our alert rules and dashboards select
MAX_ABSENT = 20_000  # totals that are away, of which it is known what was taken
MAX_POINTS = 2_000  # of a request: 0.5 MB of JSON
DELTA, CUMULATIVE = 1, 2  # AggregationTemporality
NO_VALUE = 1  # DataPointFlags: the series has ended
UNITS = {"seconds": "s", "bytes": "By", "ratio": "1"}
SEVERITY_NUMBERS: Mapping[Severity, int] = {"info": 9, "warning": 13, "critical": 17}
SINCE_BEFORE = frozenset(metric.name for metric in DRIVER_METRICS)  # totals since the machine or the process began
Pairs = tuple[tuple[str, str], ...]
Key = tuple[str, Pairs]  # a series: the name of its metric, and its labels
Value = float | HistogramTotal


class Point(NamedTuple):
    """A series with its value, None once it has ended; `at` is in seconds since the epoch."""

    metric: Metric[Any]
    key: Key
    value: Value | None
    at: float

    @property
    def counts(self) -> bool:
        """Whether it is a total, which a receiver may want as differences."""
        return self.metric.kind in ("counter", "histogram")


class MetricsEncoder:
    """Makes export requests, and remembers what the receiver took: differences and ended series follow from that.
    `resource` names the sender, `start` is the instant since which totals count (seconds since the epoch)."""

    def __init__(self, resource: Mapping[str, str], start: float, delta: bool = False) -> None:
        self._resource = resource_of(resource)
        self._start, self._delta = start, delta
        self._taken: dict[Key, Point] = {}

    def batches(self, families: Iterable[Published], now: float) -> Iterator[Sequence[Point]]:
        """The points of all series at `now`, then of those that have ended: at most MAX_POINTS for each request. What
        a total grew by needs no end: where it is told again, it goes on from what was taken."""
        seen: set[Key] = set()
        told = {name for name, _ in self._taken} if self._delta else set()
        points = (each for each in _points(families, now) if not self._is_base(each, told))
        while some := list(islice(points, MAX_POINTS)):
            seen.update(point.key for point in some)
            yield some
        ending = [point for key, point in self._taken.items() if key not in seen]
        absent = [each for each in ending if self._delta and each.counts]
        for each in absent[: max(0, len(absent) - MAX_ABSENT)]:  # those away longest
            del self._taken[each.key]
        ended = [each._replace(value=None, at=now) for each in ending if not self._delta or not each.counts]
        for first in range(0, len(ended), MAX_POINTS):
            yield ended[first : first + MAX_POINTS]

    def _is_base(self, point: Point, told: Set[str]) -> bool:
        """Whether only what comes after a total counts, since it began before `start`. Then it is not sent. What joins
        once its metric is `told` began later, as a new executor does."""
        name = point.metric.name
        base = self._delta and point.counts and name in SINCE_BEFORE and name not in told
        if base:
            self._taken[point.key] = point
        return base

    def accept(self, points: Sequence[Point]) -> None:
        """Call it when the receiver has taken these points."""
        for point in points:
            self._taken.pop(point.key, None)  # the order is that in which they were seen last
            if point.value is not None:
                self._taken[point.key] = point

    def request(self, points: Sequence[Point]) -> dict[str, Any]:
        """The export request of one batch of points."""
        metrics = [self._metric(next(group), group) for _, group in groupby(points, key=lambda point: point.key[0])]
        scope = {"scope": {"name": SERVICE}, "metrics": metrics}
        return {"resourceMetrics": [{"resource": self._resource, "scopeMetrics": [scope]}]}

    def _metric(self, first: Point, others: Iterable[Point]) -> dict[str, Any]:
        metric = first.metric
        data: dict[str, Any] = {"dataPoints": [self._data_point(each) for each in (first, *others)]}
        if metric.kind in ("counter", "histogram"):
            data["aggregationTemporality"] = DELTA if self._delta else CUMULATIVE
        if metric.kind == "counter":
            data["isMonotonic"] = True
        shape = {"counter": "sum", "histogram": "histogram"}.get(metric.kind, "gauge")
        unit = UNITS.get(metric.name.removesuffix("_total").rsplit("_", 1)[-1], "")
        return {"name": metric.name, "description": metric.help, "unit": unit, shape: data}

    def _data_point(self, point: Point) -> dict[str, Any]:
        before = self._taken.get(point.key) if self._delta and point.counts else None
        made = {"attributes": _attributes(point.key[1]), "timeUnixNano": nanoseconds(point.at)}
        if point.counts:
            made["startTimeUnixNano"] = nanoseconds(before.at if before else self._start)
        if point.value is None:
            return made | {"flags": NO_VALUE}
        value = since(point.value, before.value if before else None)
        if not isinstance(value, HistogramTotal):
            return made | {"asDouble": value}
        buckets = {"bucketCounts": [*map(str, value.counts)], "explicitBounds": list(value.bounds)}
        return made | {"count": str(sum(value.counts)), "sum": value.sum, **buckets}


def since(value: Value, before: Value | None) -> Value:
    """What a total grew by; all of it when it began anew."""
    if isinstance(value, HistogramTotal) and isinstance(before, HistogramTotal):
        counts = [now - then for now, then in zip(value.counts, before.counts, strict=True)]
        return value if min(counts) < 0 else HistogramTotal(value.bounds, counts, value.sum - before.sum)
    if isinstance(value, float) and isinstance(before, float):
        return value if value < before else value - before
    return value


def nanoseconds(instant: float) -> str:
    """An instant as OTLP/JSON has it: 64-bit numbers are text."""
    return str(int(instant * 1e6) * 1000)


def resource_of(names: Mapping[str, str]) -> dict[str, Any]:
    """The sender of a request."""
    return {"attributes": _attributes(tuple(names.items()))}


@lru_cache(maxsize=MAX_LABEL_SETS)
def _attributes(pairs: Pairs) -> list[dict[str, Any]]:
    return [{"key": key, "value": {"stringValue": value}} for key, value in pairs]


def _points(families: Iterable[Published], now: float) -> Iterator[Point]:
    for metric, parts in families:
        for shared, family in parts:
            if family.histogram is not None:
                yield Point(metric, (metric.name, shared), family.histogram, now)
            for labels, value in family.values(now):
                yield Point(metric, (metric.name, (*shared, *zip(metric.labels, labels, strict=True))), value, now)


class CauseLog:
    """Turns verdicts into log records: one when a root cause begins, one when it ends."""

    def __init__(self, app: str | None = None) -> None:
        self._app = app
        self._active: dict[str, dict[tuple[str, str, str], Finding]] = {}  # by query

    def take(self, verdict: Verdict) -> list[dict[str, Any]]:
        """The records of what changed with this verdict."""
        now = {each.identity: each for each in verdict.root_causes}
        before = self._active.get(verdict.query, {})
        self._active[verdict.query] = now
        began = [self._record(verdict, each, ended=False) for key, each in now.items() if key not in before]
        over = [self._record(verdict, each, ended=True) for key, each in before.items() if key not in now]
        return [*over, *began]

    def forget(self, queries: Iterable[str]) -> None:
        """Drops what is known of all other queries than these: the driver no longer reports them."""
        self._active = {name: self._active[name] for name in queries if name in self._active}

    def _record(self, verdict: Verdict, finding: Finding, ended: bool) -> dict[str, Any]:
        names = {"query": verdict.query, "rule": finding.rule, "state": "ended" if ended else "began"}
        names |= {"component": f"{finding.component.kind} {finding.component.name}", "severity": finding.severity}
        names |= {"action": finding.remedies[0].action} if finding.remedies else {}
        names |= {"app": self._app} if self._app else {}
        return {
            "timeUnixNano": nanoseconds(verdict.at if ended else finding.since),
            "observedTimeUnixNano": nanoseconds(verdict.at),
            "severityNumber": SEVERITY_NUMBERS["info" if ended else finding.severity],
            "severityText": "INFO" if ended else finding.severity.upper(),
            "body": {"stringValue": f"{'ended: ' if ended else ''}{finding.summary}"},
            "attributes": _attributes(tuple((key, clean_label(value)) for key, value in names.items())),
        }


def logs_request(resource: Mapping[str, str], records: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """An export request of log records."""
    scope = {"scope": {"name": SERVICE}, "logRecords": list(records)}
    return {"resourceLogs": [{"resource": resource_of(resource), "scopeLogs": [scope]}]}
