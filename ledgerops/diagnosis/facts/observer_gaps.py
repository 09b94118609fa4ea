"""What the records of the observer tell of its own gaps."""

from collections.abc import Iterable, Mapping, Sequence

from ledgerops.model.records import Observer
from ledgerops.signals.query_view import QueryView
from ledgerops.signals.run import WINDOW_SECONDS

RECENT_SECONDS = 20.0  # an earlier error may have been the last; over less the worker's share is chance
MIN_ERRORS = 3  # of a collector: one or two happen while a driver starts or stops


def recent_records(view: QueryView) -> Sequence[Observer]:
    """Those of the latest minute, of the present driver: its counters only grow."""
    found: list[Observer] = []
    for record in reversed([record for record in view.observer if record.at <= view.now]):
        if found and (record.at < found[0].at - WINDOW_SECONDS or record.events > found[-1].events):
            break
        found.append(record)
    return found[::-1]


def failing_collectors(records: Sequence[Observer]) -> Mapping[str, int]:
    """The collectors that fail again and again, and how often each did in these records."""
    newest = records[-1]
    recent = next(record for record in records if record.at >= newest.at - RECENT_SECONDS)
    lately = (records[-2] if recent is newest else recent).collector_errors
    grown = {name: n - records[0].collector_errors.get(name, 0) for name, n in newest.collector_errors.items()}
    return {
        name: count
        for name, count in sorted(grown.items())
        if count >= MIN_ERRORS and newest.collector_errors[name] > lately.get(name, 0)
    }


def gaps_began(records: Sequence[Observer], failing: Iterable[str]) -> float:
    """When the first of them had failed, or the first event was lost."""
    first = records[0]
    for record in records[1:]:
        failed = any(record.collector_errors.get(name, 0) > first.collector_errors.get(name, 0) for name in failing)
        if failed or record.dropped > first.dropped:
            return record.at
    return records[-1].at
