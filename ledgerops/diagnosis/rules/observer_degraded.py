"""Observer degraded: the data of ledgerops about this query may be incomplete.

Meaning: ledgerops misses data in this driver: its worker could not keep up and dropped events, a collector fails again
    and again, the worker uses nearly all of its thread's time, or it has stopped and reports nothing.
Impact: metrics have gaps, and causes may be missed. The query itself is not affected. The finding is reported for every
    query in the driver, because the missing data concerns them all; the alert LedgerObserverDegraded fires once for the
    driver.
Diagnosis: `increase(ledgerops_collector_errors_total[10m])` by `collector`, `ledgerops_listener_dropped_total`,
    `ledgerops_listener_queue_size` and `rate(ledgerops_worker_seconds_total[5m])` by `step`. The driver's log says
    once, in a line that begins with `ledgerops`, what fails.
Mitigation: tasks and host: Spark's UI does not answer; see the setting ui_url, and whether the driver has a free core.
    kafka: the brokers cannot be asked. recording: the disk is full. Very many queries with very short triggers: raise
    their trigger interval, or leave the tasks out (the setting tasks_collector).
Evidence:
    collector_errors: growth of collector_errors within the 60 s before the newest look of the kind observer, summed
        over the collectors where it is at least 3 and grew within the latest 20 s.
    dropped_events: growth of `dropped` within these 60 s.
    queue_share: queue_size over queue_limit in the newest look.
    seconds_since_last_look: now less the newest look, when nothing was seen of the query either since then.
    worker_busy_ratio: growth of worker_seconds over these 60 s, over the seconds between the two looks.
"""

from collections.abc import Iterator, Sequence

from ledgerops.diagnosis.rule import Rule
from ledgerops.model.finding import Component, Evidence, Finding, Remedy
from ledgerops.model.records import Observer
from ledgerops.signals.query_view import QueryView

WINDOW = 60.0  # seconds looked back
RECENTLY = 20.0  # seconds; an error before that may have been the last
FRESH = 30.0  # seconds; an older look says nothing about now
SILENT = 45.0  # seconds without any sign of the observer; attaching to another session takes half of it
ERRORS = 3  # of a collector: one that fails once or twice asked a driver that was starting or stopping
QUEUE = 0.5  # of its limit: it was never above 1 % with 50 busy queries
WORKER = 0.8  # of one thread; with 50 queries at one batch a second it is below 0.25
ENOUGH = 20.0  # seconds over which the worker's share is taken


def check(view: QueryView) -> Iterator[Finding]:
    if not view.observer or view.history.ended is not None:
        return
    silent = unseen(view)
    if silent >= SILENT:
        yield _nothing_seen(view, silent)
        return
    looks = _looks(view)
    if len(looks) < 2:
        return
    first, newest = looks[0], looks[-1]
    failing, errors = _failing(looks)
    dropped = newest.dropped - first.dropped
    queue = newest.queue_size / newest.queue_limit if newest.queue_limit else 0.0
    seconds = newest.at - first.at
    busy = (newest.worker_seconds - first.worker_seconds) / seconds
    told, evidence = [], []
    if failing:
        verb = "fails" if len(failing) == 1 else "fail"
        told.append(f"{' and '.join(failing)} {verb}, {errors} times within {seconds:.0f} s")
        evidence.append(Evidence("collector_errors", float(errors), "count", f"< {ERRORS}", newest.at))
    if dropped > 0:
        told.append(f"{dropped:,} events were thrown away within {seconds:.0f} s")
        evidence.append(Evidence("dropped_events", float(dropped), "count", "0", newest.at))
    if queue >= QUEUE:
        told.append(f"{newest.queue_size:,} events wait, of {newest.queue_limit:,} that can")
        evidence.append(Evidence("queue_share", queue, "ratio", f"< {QUEUE:g}", newest.at))
    if busy >= WORKER and seconds >= ENOUGH:
        told.append(f"the worker needs {busy:.0%} of its time")
        evidence.append(Evidence("worker_busy_ratio", busy, "ratio", f"< {WORKER:g}", newest.at))
    if not evidence:
        return
    yield Finding(
        f"what is known of this query has gaps: {'; '.join(told)}",
        Component("observer", "ledgerops", " and ".join(failing) or "events"),
        tuple(evidence),
        (_remedy(failing),),
        confidence=min(0.95, 0.7 + 0.1 * len(evidence) + 0.05 * (errors >= 2 * ERRORS)),
        began=_began(looks, failing),
    )


def unseen(view: QueryView) -> float:
    """Seconds since the observer, which looks every 5 s, saw anything of the driver or the query; 0 without one."""
    if not view.observer:
        return 0.0
    return max(0.0, view.now - max(view.observer[-1].at, view.history.last_seen or 0.0))


def _nothing_seen(view: QueryView, seconds: float) -> Finding:
    at = view.now - seconds
    return Finding(
        f"nothing was seen of this driver for {seconds:.0f} s: whether its queries are well is not known",
        Component("observer", "ledgerops", "worker"),
        (Evidence("seconds_since_last_look", seconds, "seconds", f"< {SILENT:g}", view.now),),
        (
            Remedy(
                "check whether the driver runs, and restart its observer", "the findings are those of the last sample"
            ),
        ),
        confidence=0.8,
        began=at,
    )


def _looks(view: QueryView) -> Sequence[Observer]:
    """Those of the latest minute, of the present driver: its counters only grow."""
    found: list[Observer] = []
    for look in reversed(view.observer):
        if look.at > view.now:
            continue
        if look.at < (found[0].at - WINDOW if found else view.now - FRESH):
            break
        if found and look.events > found[-1].events:
            break
        found.append(look)
    return found[::-1]


def _failing(looks: Sequence[Observer]) -> tuple[list[str], int]:
    """The collectors that fail again and again, and how often within the looks."""
    first, newest = looks[0], looks[-1]
    recent = next(look for look in looks if look.at >= newest.at - RECENTLY)
    recent = recent if recent is not newest else looks[-2]
    found = {}
    for name, count in newest.collector_errors.items():
        grown = count - first.collector_errors.get(name, 0)
        if grown >= ERRORS and count > recent.collector_errors.get(name, 0):
            found[name] = grown
    return sorted(found), sum(found.values())


def _began(looks: Sequence[Observer], failing: Sequence[str]) -> float:
    """The look at which the first of them had failed, or the first event was lost."""
    first = looks[0]
    for look in looks[1:]:
        failed = any(look.collector_errors.get(name, 0) > first.collector_errors.get(name, 0) for name in failing)
        if failed or look.dropped > first.dropped:
            return look.at
    return looks[-1].at


def _remedy(failing: Sequence[str]) -> Remedy:
    if {"tasks", "host"} & set(failing):
        return Remedy("see whether Spark's UI answers, and the setting ui_url", "tasks and executors are read from it")
    if failing:
        return Remedy("look for the first line of ledgerops in the driver's log", "it says once why a collector fails")
    return Remedy(
        "raise the trigger interval of queries with very short ones", "each batch costs the worker some milliseconds"
    )


RULE = Rule(slug="observer-degraded", severity="warning", check=check, runbook=__doc__, at_rest=True)
