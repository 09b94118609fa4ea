"""Alerts on fixed thresholds, as a public mixin for Spark would have them, read from the scraped metrics as they come.

An alert names what its runbook would look at first: a batch that outlasts its trigger three scrapes in a row, the sink;
a lag that grew for three scrapes, the load; an end, the failure; no progress for half a minute, a hang. Times are
scaled to cases of a minute or two: with the five minutes that such alerts wait in production, none would fire at all.
"""

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

from ledgerops.drills.benchmark.baselines.data import Answer, BenchmarkCase, answered

IN_A_ROW = 3  # scrapes
WINDOW = 4  # scrapes over which a lag tool asks whether the backlog grew, and was never 0
NO_PROGRESS_SECONDS = 30.0
MIN_LAG_SECONDS = 10.0
DURATION, INTERVAL = "ledgerops_last_batch_duration_seconds", "ledgerops_trigger_interval_seconds"
LAG, RUNNING = "ledgerops_query_lag_seconds", "ledgerops_batch_running_seconds"
PROGRESS, ACTIVE = "ledgerops_last_progress_timestamp_seconds", "ledgerops_query_active"
FAILURES, BACKLOG = "ledgerops_query_failures_total", "ledgerops_query_backlog_offsets"
READ = (DURATION, INTERVAL, LAG, RUNNING, PROGRESS, ACTIVE, FAILURES)

Scrape = tuple[float, Mapping[str, float]]


def scrapes(case: BenchmarkCase, metrics: Sequence[str]) -> Iterator[Scrape]:
    """Each scrape with the largest value of each metric."""
    found: dict[float, dict[str, float]] = {}
    for at, metric, _, value in case.rows():
        if metric in metrics:
            values = found.setdefault(at, {})
            values[metric] = max(value, values.get(metric, value))
    yield from sorted(found.items())


def fired(scraped: Sequence[Scrape]) -> list[str]:
    """The causes that alerts name after the last of these scrapes, the most serious first."""
    at, now = scraped[-1]
    causes = []
    if now.get(FAILURES, 0.0) > 0:
        causes.append("query-failed")
    elif now.get(ACTIVE, 1.0) == 0:
        return []  # a clean stop
    started = now.get(PROGRESS)
    if now.get(RUNNING, 0.0) > NO_PROGRESS_SECONDS or (
        started is not None and at - started > NO_PROGRESS_SECONDS + 3 * now.get(INTERVAL, 0.0)
    ):
        causes.append("query-stuck")
    lately = [values for _, values in scraped[-IN_A_ROW:]]
    if len(lately) == IN_A_ROW:
        lags = [values.get(LAG, 0.0) for values in lately]
        if lags[-1] > MIN_LAG_SECONDS + now.get(INTERVAL, 0.0) and all(a < b for a, b in pairwise(lags)):
            causes.append("input-overload")
        if all(0 < values.get(INTERVAL, 0.0) < values.get(DURATION, 0.0) for values in lately):
            causes.append("slow-sink")
    return causes


def by_thresholds(case: BenchmarkCase) -> list[Answer]:
    """What is firing at each scrape."""
    seen: deque[Scrape] = deque(maxlen=IN_A_ROW)
    found: list[Answer] = []
    for scrape in scrapes(case, READ):
        seen.append(scrape)
        found.append(answered(case.name, scrape[0], fired(tuple(seen))))
    return found


def grows(backlog: Sequence[float]) -> bool:
    """Whether a backlog never shrank within the window, and is larger at its end."""
    if len(backlog) < WINDOW:
        return False
    lately = backlog[-WINDOW:]
    return lately[0] > 0 and all(a <= b for a, b in pairwise(lately)) and lately[-1] > lately[0]


def by_backlog(case: BenchmarkCase) -> list[Answer]:
    """What a Kafka lag tool sees, which knows the number of unread offsets and nothing else: `input-overload` while it
    grows; nothing while it is constant, shrinks, or is not known."""
    seen: list[float] = []
    found = []
    for at, values in scrapes(case, (BACKLOG,)):
        seen.append(values[BACKLOG])
        found.append(answered(case.name, at, ("input-overload",) if grows(seen) else ()))
    return found
