"""Observer degraded: the data of ledgerops about this query may be incomplete.

Meaning: ledgerops is missing data of this driver. Its worker could not keep up and dropped events, a collector fails
    repeatedly, the worker is busy nearly all the time, or it has stopped and reports nothing. Or Spark tells late what
    happens: it calls one listener after another, and a slow one of the application delays them all.
Impact: metrics have gaps, and causes may be missed. The query itself is not affected. Every query of the driver has
    this finding, because the missing data concerns them all; the alert LedgerObserverDegraded fires once for the
    driver.
Diagnosis: 1. Search the log of the driver for `only counted`: each failure is logged once, with
    its reason.
    2. `increase(ledgerops_collector_errors_total{instance="INSTANCE"}[10m])` by `collector` shows what fails. `tasks`
    or `host`: Spark does not answer. `kafka`: the brokers cannot be reached. `recording`: the disk is full.
    3. If no collector fails, check `ledgerops_listener_queue_size`, `ledgerops_listener_dropped_total` and
    `rate(ledgerops_worker_seconds_total{instance="INSTANCE"}[5m])` by `step`. A full queue or a worker near 1 second
    per second means too many batches for one worker.
    4. If events come late, a thread dump of the driver shows at which listener Spark waits.
Mitigation: do not restart the job because of this finding. For `tasks` and `host`, check the setting ui_url and whether
    the driver has a free core. For `kafka`, check the broker address and the credentials. For `recording`, free
    disk space. If the worker is too busy, raise the trigger interval of queries with very short ones, or switch off the
    setting tasks_collector.
Evidence:
    collector_errors: growth of collector_errors in the 60 s before the newest record `observer`, over the collectors
        with at least 3 that failed in the latest 20 s
    dropped_events: growth of `dropped` within these 60 s
    queue_share: queue_size / queue_limit of the newest record
    seconds_since_last_look: now - the newest record `observer`, if no event of the query is newer
    event_delay_seconds: when the newest progress or idle event came - the end of the batch, or the instant, it tells of
    worker_busy_ratio: growth of worker_seconds in these 60 s / the time between the two records
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from ledgerops.common.format import counted, duration
from ledgerops.diagnosis.facts.hang import MIN_UNWATCHED_SECONDS, unseen
from ledgerops.diagnosis.limits import MOSTLY, NEARLY_ALL
from ledgerops.diagnosis.rule import LIKELY, Rule
from ledgerops.metrics.first_steps import GENERAL, first_step
from ledgerops.model.finding import Component, Evidence, Finding, Remedy
from ledgerops.model.history import History
from ledgerops.model.records import Observer
from ledgerops.signals.query_view import QueryView
from ledgerops.signals.run import WINDOW_SECONDS

RECENT_SECONDS = 20.0  # an earlier error may have been the last; over less the worker's share is chance
DELAY = "event_delay_seconds"
MIN_ERRORS = 3  # of a collector: one or two happen while a driver starts or stops


def check(view: QueryView) -> Iterator[Finding]:
    if not view.observer or view.history.ended is not None:
        return
    silent = unseen(view)
    if silent >= MIN_UNWATCHED_SECONDS:
        yield Finding(
            f"this driver has reported nothing for {duration(silent)}, so the state of its queries is unknown",
            Component("observer", "ledgerops", "worker"),
            (Evidence("seconds_since_last_look", silent, "seconds", f"< {MIN_UNWATCHED_SECONDS:g}", view.now),),
            (first_step("observer-degraded", "silent", "the findings shown are those of its last report"),),
            confidence=LIKELY,
            began=view.now - silent,
        )
        return
    records = _recent_records(view)
    if len(records) < 2 or records[-1].at < view.now - MIN_UNWATCHED_SECONDS:
        return
    failing = _failing_collectors(records)
    gaps = list(_gaps(records, failing, view.history))
    if gaps:
        yield Finding(
            f"the data about this query has gaps: {'; '.join(words for words, _ in gaps)}",
            Component("observer", "ledgerops", " and ".join(failing) or "events"),
            tuple(evidence for _, evidence in gaps),
            (_remedy(failing, gaps[0][1].name),),
            confidence=LIKELY,
            began=_gaps_began(records, failing),
        )


def _gaps(records: Sequence[Observer], failing: Mapping[str, int], history: History) -> Iterator[tuple[str, Evidence]]:
    """What is missing, in words and as a number."""
    first, newest = records[0], records[-1]
    seconds, dropped, errors = newest.at - first.at, newest.dropped - first.dropped, sum(failing.values())
    queue = newest.queue_size / newest.queue_limit if newest.queue_limit else 0.0
    busy = (newest.worker_seconds - first.worker_seconds) / seconds
    if failing:
        yield (
            f"{'collector' if len(failing) == 1 else 'collectors'} {' and '.join(failing)} failed {errors} times in "
            f"{duration(seconds)}",
            Evidence("collector_errors", float(errors), "count", f"< {MIN_ERRORS}", newest.at),
        )
    if dropped > 0:
        words = f"{counted(dropped, 'event was', 'events were')} dropped in {duration(seconds)}"
        yield words, Evidence("dropped_events", float(dropped), "count", "0", newest.at)
    if queue >= MOSTLY:
        words = f"{newest.queue_size:,} of at most {newest.queue_limit:,} events are waiting"
        yield words, Evidence("queue_share", queue, "ratio", f"< {MOSTLY:g}", newest.at)
    if busy >= NEARLY_ALL and seconds >= RECENT_SECONDS:
        words = f"the worker is busy {busy:.0%} of the time"
        yield words, Evidence("worker_busy_ratio", busy, "ratio", f"< {NEARLY_ALL:g}", newest.at)
    if history.told_at is not None and (late := history.told_late) >= MIN_UNWATCHED_SECONDS:
        words = f"Spark told of its newest batch {duration(late)} late"
        yield words, Evidence(DELAY, late, "seconds", f"< {MIN_UNWATCHED_SECONDS:g}", history.told_at)


def _remedy(failing: Mapping[str, int], first_gap: str) -> Remedy:
    if first_gap == DELAY:
        return first_step("observer-degraded", "late", "Spark calls one listener after another")
    if {"tasks", "host"} & failing.keys():
        return first_step("observer-degraded", "tasks", "tasks and executors are read there")
    if failing:
        return first_step("observer-degraded", GENERAL, "the reason of a failure is logged once")
    return first_step("observer-degraded", "worker", "each batch takes the worker some milliseconds")


def _recent_records(view: QueryView) -> Sequence[Observer]:
    """Those of the latest minute, of the present driver: its counters only grow."""
    found: list[Observer] = []
    for record in reversed([record for record in view.observer if record.at <= view.now]):
        if found and (record.at < found[0].at - WINDOW_SECONDS or record.events > found[-1].events):
            break
        found.append(record)
    return found[::-1]


def _failing_collectors(records: Sequence[Observer]) -> Mapping[str, int]:
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


def _gaps_began(records: Sequence[Observer], failing: Iterable[str]) -> float:
    """When the first of them had failed, or the first event was lost."""
    first = records[0]
    for record in records[1:]:
        failed = any(record.collector_errors.get(name, 0) > first.collector_errors.get(name, 0) for name in failing)
        if failed or record.dropped > first.dropped:
            return record.at
    return records[-1].at


RULE = Rule("observer-degraded", "warning", check, __doc__, at_rest=True)
