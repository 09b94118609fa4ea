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
    batch_seconds_median: median of durationMs.triggerExecution / 1000 over the batches that the finding names
"""

from collections.abc import Iterator

from ledgerops.common.format import duration
from ledgerops.diagnosis import harm
from ledgerops.diagnosis.limits import LONG_SECONDS, VERY_LONG_SECONDS
from ledgerops.diagnosis.profile import profile
from ledgerops.diagnosis.rule import UNSURE, Rule
from ledgerops.metrics.first_steps import GENERAL, first_step
from ledgerops.model.finding import Component, Evidence, Finding
from ledgerops.signals.query_view import QueryView


def check(view: QueryView) -> Iterator[Finding]:
    found = None if view.trigger.interval or not harm.examined(view) else profile(view)
    if found is None or found.duration <= LONG_SECONDS:
        return  # an interval that is known says itself whether batches are too long
    several, running = len(found.splits) > 1, view.run.unfinished_seconds or 0.0
    if not several and running <= VERY_LONG_SECONDS:
        return  # a first batch alone says nothing of the next
    take = "batches run back to back and take" if harm.never_pauses(view) else "batches take"
    yield Finding(
        f"{take if several else 'a batch took'} {duration(found.duration)}",
        Component("query", view.query),
        (Evidence("batch_seconds_median", found.duration, "seconds", f"< {LONG_SECONDS:g}", found.at),),
        (first_step("long-batches", GENERAL, "its cause is there"),),
        confidence=UNSURE,
        batches=found.batches,
    )


RULE = Rule("long-batches", "info", check, __doc__)
