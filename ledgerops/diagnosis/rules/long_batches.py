"""Long batches: batches run back to back, take more than a second, and nothing else is found.

Meaning: the query has no pause between its batches, and each of them takes long; or its batches take twice as long as
    before; or its first two took more than 20 s each, of which the second may still run. Its trigger interval is not
    known, so it is not clear whether batches are too long. The finding names the largest part of a batch.
Impact: a result is at least as old as a batch takes. With more rows or a slower sink, the query falls behind.
Diagnosis: 1. Read in the finding which part of a batch takes longest. `ledgerops diagnose http://INSTANCE --query QUERY
    --json` lists all parts under `attribution`.
    2. `sum by (phase) (rate(ledgerops_batch_phase_seconds_total{app="APP",query="QUERY"}[5m]))` shows the phases over
    time. If one grew, find out what changed at that time.
    3. Check `max(ledgerops_source_lag_seconds{app="APP",query="QUERY"})`. If it grows, the query does not keep up: see
    `falling-behind`; if it is stable, no action is needed.
Mitigation: none while results are fresh enough. Otherwise start with the part that is named. If the query has a trigger
    interval, give it with `ledgerops diagnose --trigger 10s` so that batches can be compared with it.
Evidence:
    batch_seconds_median: median of durationMs.triggerExecution / 1000 over the newest 3 batches of the run, without
        those of its first 10 s; if there are fewer, over all batches with rows
"""

from collections.abc import Iterator
from statistics import median

from ledgerops.common.format import duration
from ledgerops.diagnosis import harm
from ledgerops.diagnosis.limits import LONG_SECONDS, VERY_LONG_SECONDS
from ledgerops.diagnosis.rule import UNSURE, Rule
from ledgerops.metrics.first_steps import GENERAL, first_step
from ledgerops.model.finding import Component, Evidence, Finding
from ledgerops.signals.baseline import RECENT_BATCHES
from ledgerops.signals.query_view import QueryView


def check(view: QueryView) -> Iterator[Finding]:
    if view.last is None or view.trigger.interval or not harm.examined(view):
        return  # an interval that is known says itself whether batches are too long
    latest = view.baseline.recent
    if len(latest) < RECENT_BATCHES:
        latest = [batch for batch in view.batches if batch.rows > 0]
    running = view.run.unfinished_seconds or 0.0
    if not latest or (len(latest) == 1 and running <= VERY_LONG_SECONDS):
        return  # a first batch alone says nothing of the next
    seconds = median(batch.duration for batch in latest)
    at = view.last.ended
    several = "batches run back to back and take" if harm.never_pauses(view) else "batches take"
    yield Finding(
        f"{several if len(latest) > 1 else 'a batch took'} {duration(seconds)}",
        Component("query", view.query),
        (Evidence("batch_seconds_median", seconds, "seconds", f"< {LONG_SECONDS:g}", at),),
        (first_step("long-batches", GENERAL, "its cause is there"),),
        confidence=UNSURE,
    )


RULE = Rule("long-batches", "info", check, __doc__)
