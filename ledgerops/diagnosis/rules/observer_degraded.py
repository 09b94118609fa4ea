"""Observer degraded: the data of ledgerops about this query may be incomplete.

Meaning: ledgerops is missing data of this driver. Its worker could not keep up and dropped events, a collector fails
    repeatedly, the worker is busy nearly all the time, or it has stopped and reports nothing. Or the whole driver stood
    still. Or Spark tells late what happens: it calls one listener after another, and a slow one of the application
    delays them all.
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
    4. If the driver stood still, see at that time the log of the machine and the events of its container.
    5. If events come late, a thread dump of the driver shows at which listener Spark waits.
Mitigation: do not restart the job because of this finding. For `tasks` and `host`, check the setting ui_url and whether
    the driver has a free core. For `kafka`, check the broker address and the credentials. For `recording`, free
    disk space. If the worker is too busy, raise the trigger interval of queries with very short ones, or switch off the
    setting tasks_collector.
Evidence:
    collector_errors: growth of collector_errors in the 60 s before the newest record `observer`, over the collectors
        with at least 3 that failed in the latest 20 s
    dropped_events: growth of `dropped` within these 60 s
    queue_share: queue_size / queue_limit of the newest record
    standstill_seconds: the longest time without a record `observer`, a begin or an end of a batch in which the driver's
        Python used less than half a core, if it ended in the last 60 s
    seconds_since_last_look: now - the newest record `observer`, if no event of the query is newer
    event_delay_seconds: when the newest progress or idle event came - the end of the batch, or the instant, it tells of
    worker_busy_ratio: growth of worker_seconds in these 60 s / the time between the two records
"""

from collections.abc import Iterator, Mapping, Sequence

from ledgerops.common.format import counted, duration
from ledgerops.diagnosis.facts.observer_gaps import (
    MIN_ERRORS,
    RECENT_SECONDS,
    failing_collectors,
    gaps_began,
    recent_records,
)
from ledgerops.diagnosis.facts.unwatched import MIN_UNWATCHED_SECONDS, standstills, unseen
from ledgerops.diagnosis.limits import MOSTLY, NEARLY_ALL
from ledgerops.diagnosis.rule import LIKELY, Rule
from ledgerops.metrics.first_steps import GENERAL, first_step
from ledgerops.model.finding import Component, Evidence, Finding, Remedy
from ledgerops.model.history import History
from ledgerops.model.records import Observer
from ledgerops.signals.query_view import QueryView
from ledgerops.signals.run import WINDOW_SECONDS

DELAY = "event_delay_seconds"


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
    if (still := _standstill(view)) is not None:
        yield still
        return
    records = recent_records(view)
    if len(records) < 2 or records[-1].at < view.now - MIN_UNWATCHED_SECONDS:
        return
    failing = failing_collectors(records)
    gaps = list(_gaps(records, failing, view.history))
    if gaps:
        yield Finding(
            f"the data about this query has gaps: {'; '.join(words for words, _ in gaps)}",
            Component("observer", "ledgerops", " and ".join(failing) or "events"),
            tuple(evidence for _, evidence in gaps),
            (_remedy(failing, gaps[0][1].name),),
            confidence=LIKELY,
            began=gaps_began(records, failing),
        )


def _standstill(view: QueryView) -> Finding | None:
    """The driver stood still, a moment ago: nobody could tell meanwhile."""
    still = next(reversed(standstills(view)), None)
    if still is None or still.seconds < MIN_UNWATCHED_SECONDS or still.until < view.now - WINDOW_SECONDS:
        return None
    limit = f"< {MIN_UNWATCHED_SECONDS:g}"
    return Finding(
        f"this driver stood still for {duration(still.seconds)}, and its queries with it: its machine, its container "
        "or its process was suspended, or its clock was set",
        Component("observer", "ledgerops", "worker"),
        (Evidence("standstill_seconds", still.seconds, "seconds", limit, still.until),),
        (first_step("observer-degraded", "still", "nothing in a query explains it"),),
        confidence=LIKELY,
        began=still.since,
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


RULE = Rule("observer-degraded", "warning", check, __doc__, at_rest=True)
