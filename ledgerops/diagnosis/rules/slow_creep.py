"""Slow creep: the load rises steadily, and will soon exceed what the query can process.

Meaning: the arrival rate has risen in each part of the observed time, and batches take most of the trigger interval. At
    this rate they will outlast it, and the query will fall behind. A step, a burst, or a load that levels off is not
    reported.
Impact: none yet. Once the limit is passed, results are later with every batch, and a restart does not help.
Diagnosis: 1. `ledgerops_busy_ratio{app="APP",query="QUERY"}` approaches 1. The finding estimates when it gets there.
    2. Plot `sum(ledgerops_arrival_rows_per_second{app="APP",query="QUERY"})` for the last hours and days against
    `ledgerops_capacity_rows_per_second{app="APP",query="QUERY"}`. If it rises every day at this time and stays below
    capacity, it will fall again; if it is new, ask the producer.
    3. If arrival is flat, each row has become more expensive: see `state-growth` and `python-bound`.
Mitigation: ask the producer how far the load will rise. Before the limit is reached, give the query more cores, at most
    as many as the source has partitions, or raise the limit on rows per batch if that is what is reached first.
Evidence:
    fullness: durationMs.triggerExecution / trigger interval, or rows / the limit of the source per batch if that is
        higher; mean over the newest fifth of the window.
    fullness_per_minute: fullness of the newest fifth minus that of the oldest, divided by the time between their ends,
        times 60.
    arrival_rows_per_second: growth of the sum of the head offsets per second, over the newest fifth of the window. A
        head is interpolated between the latestOffset of batches, each sampled at timestamp plus
        durationMs.latestOffset. The newest fifth ends with the last of these samples.
    arrival_growth: that number divided by the same of the oldest fifth, minus 1.
    seconds_to_capacity: time from the newest batch until fullness reaches 1, extrapolated along a straight line through
        the fifths that follows the bend of the last three.
    window_seconds: length of the window: 50, 300 or 1,800 s, divided at multiples of 10 s.
"""

from collections.abc import Iterator

from ledgerops.common.format import duration
from ledgerops.diagnosis.facts.creep import (
    BY_INTERVAL,
    MAX_FORECAST_SECONDS,
    MIN_FULLNESS,
    MIN_RISE_SHARE,
    Creep,
    creep,
)
from ledgerops.diagnosis.facts.more_tasks import tasks_wait
from ledgerops.diagnosis.harm import WINDOW_SECONDS
from ledgerops.diagnosis.rule import LATE, LIKELY, UNSURE, Rule
from ledgerops.metrics.first_steps import GENERAL, first_step
from ledgerops.model.finding import Component, Evidence, Finding, Remedy
from ledgerops.signals.query_view import QueryView


def check(view: QueryView) -> Iterator[Finding]:
    found = creep(view)
    if found is None or view.last is None:
        return
    at = view.last.ended
    left = duration(found.seconds)
    when = f"at this rate the limit will be reached in about {left}" if found.seconds > 0 else "the limit is reached"
    yield Finding(
        f"arrival rose by {found.growth:.0%} in {duration(found.window)} to {found.arrival:,.0f} rows/s, and batches "
        f"use {found.fullness:.0%} of {found.by}; {when}",
        Component("query", view.query, found.by),
        (
            Evidence("fullness", found.fullness, "ratio", f"< {MIN_FULLNESS:g}", at),
            Evidence("fullness_per_minute", found.per_second * 60, "ratio", "about 0", at),
            Evidence("arrival_rows_per_second", found.arrival, "rows/s", "level", at),
            Evidence("arrival_growth", found.growth, "ratio", f"< {MIN_RISE_SHARE:g}", at),
            Evidence("seconds_to_capacity", found.seconds, "seconds", f"> {MAX_FORECAST_SECONDS:g}", at),
            Evidence("window_seconds", found.window, "seconds", "the observed time", at),
        ),
        (first_step("slow-creep", GENERAL, "only more capacity or fewer rows help"), *_room(view, found)),
        confidence=LIKELY if found.window >= WINDOW_SECONDS else UNSURE,
        began=found.began,
    )


def _room(view: QueryView, found: Creep) -> tuple[Remedy, ...]:
    """What raises the limit that is reached: no cores for tasks that wait."""
    why = "above the limit the backlog grows as long as the load lasts"
    if found.by != BY_INTERVAL:
        return (Remedy("raise the limit on the rows of a batch at the next start", why, safe=False),)
    if tasks_wait(view):
        return ()
    more = "give the query more cores before the limit is reached, at most one for each source partition"
    return (Remedy(more, why, safe=False),)


RULE = Rule("slow-creep", "warning", check, __doc__, ("input-overload", *LATE), linger=30.0)
