"""Eviction storm: a very large number of state rows expire at once, and one batch removes them all.

Meaning: the watermark passed the end of many windows, sessions or time limits in a single step. That batch removes far
    more rows of state than usual, and the removal takes most of its time.
Impact: that batch takes many times as long as usual and delays all results, and rows pile up meanwhile. It happens
    again with the next window (at midnight for windows of a day) or the next jump of the watermark.
Diagnosis: 1. `increase(ledgerops_state_removed_rows_total{app="APP",query="QUERY"}[1m])` has a spike at the same time
    as `ledgerops_last_batch_duration_seconds{app="APP",query="QUERY"}`. If it has none, removal is not the cause.
    2. `ledgerops_watermark_timestamp_seconds{app="APP",query="QUERY"}` shows how the watermark moved. A step means that
    event time jumped, for example after a pause. A steady slope means that many keys expire at the same time.
    3. Check how often it happens. Once after a restart needs no change; at the end of each window it will happen again.
Mitigation: wait for the batch to end; it removes the rows only once. To avoid the next one, use shorter windows or an
    offset by key, and no more lateness than needed for sessions and deduplication. Limit what one batch reads after a
    pause (`maxOffsetsPerTrigger`, `maxFilesPerTrigger`), so that event time does not jump. RocksDB finds expired rows
    by scanning: give it more block cache.
Evidence:
    state_rows_removed: numRowsRemoved of the operator in the named batch, the newest such of the latest 3
    usual_state_rows_removed: its median over the other batches of the run (at most 200) without the first 10 s
    state_removal_wall_seconds: allRemovalsTimeMs / 1000 / min(numShufflePartitions, numStateStoreInstances, cores) of
        that batch
    batch_seconds: durationMs.triggerExecution / 1000 of that batch
"""

from collections.abc import Iterator
from statistics import median

from ledgerops.common.format import duration
from ledgerops.diagnosis.facts import state_cost
from ledgerops.diagnosis.facts.state_trend import MIN_GROWTH_ROWS
from ledgerops.diagnosis.limits import CLEAR_TIMES, FAR_TIMES, LONG_SECONDS, MOSTLY, VERY_FAR_TIMES
from ledgerops.diagnosis.rule import LATE, Rule, confidence
from ledgerops.metrics.first_steps import GENERAL, first_step
from ledgerops.model.finding import Component, Evidence, Finding, Remedy
from ledgerops.model.records import Progress, StateOperator
from ledgerops.signals.baseline import MIN_USUAL_BATCHES, RECENT_BATCHES
from ledgerops.signals.query_view import QueryView

WAIT = first_step("eviction-storm", GENERAL, "the rows of one step of the watermark are removed once")
SPREAD = Remedy(
    "spread the ends of windows or sessions over time, or limit what a batch reads after a pause",
    "rows that expire in one step of the watermark are removed in one batch; more cores help only up to the number of "
    "state partitions, which the checkpoint fixes",
    safe=False,
)
MIN_SPIKE_SECONDS = FAR_TIMES * LONG_SECONDS  # over the usual time


def check(view: QueryView) -> Iterator[Finding]:
    found = (list(_storms(view, batch)) for batch in reversed(view.baseline.recent))
    yield from next(filter(None, found), ())


def _storms(view: QueryView, batch: Progress) -> Iterator[Finding]:
    """One for each operator whose removal takes most of the batch."""
    if batch.duration < MIN_SPIKE_SECONDS:
        return
    others = [each for each in view.baseline.steady if each is not batch]
    if len(others) < MIN_USUAL_BATCHES:
        return
    usual, at = median(each.duration for each in others), batch.ended
    too_long = max(CLEAR_TIMES * max(usual, view.interval), usual + MIN_SPIKE_SECONDS)
    for index, operator in enumerate(batch.operators if batch.duration >= too_long else ()):
        usually = median(state.removed for _, state in state_cost.reports(others, index))
        seconds = _seconds(view, operator)
        many = operator.removed >= max(MIN_GROWTH_ROWS, VERY_FAR_TIMES * usually)
        if not many or seconds < MOSTLY * batch.duration:
            continue
        limit = f"< {VERY_FAR_TIMES * usually:,.0f}"
        yield Finding(
            f"{operator.name} removed {operator.removed:,} rows of its state in one batch (usually {usually:,.0f}), "
            f"which took {duration(seconds)} of {duration(batch.duration)}",
            Component("operator", operator.name),
            (
                Evidence("state_rows_removed", operator.removed, "rows", limit, at),
                Evidence("usual_state_rows_removed", usually, "rows", "the usual", at),
                Evidence("state_removal_wall_seconds", seconds, "seconds", "a small part", at),
                Evidence("batch_seconds", batch.duration, "seconds", f"~ {usual:.1f}", at),
            ),
            (WAIT, SPREAD),
            confidence=confidence(seconds, MOSTLY * batch.duration),
            began=batch.started,
            share=min(1.0, seconds / batch.duration),
            saving_seconds=seconds,
        )


def _seconds(view: QueryView, operator: StateOperator) -> float:
    """Wall seconds of a batch in which an operator removed rows."""
    return operator.removal_seconds / state_cost.parallel_tasks(view, operator)


def ruled_out(view: QueryView) -> str | None:
    latest = view.baseline.recent
    if view.cluster.cores is None or len(latest) < RECENT_BATCHES or not latest[-1].operators:
        return None  # task seconds over an unknown number of slots say nothing
    most = max(sum(_seconds(view, operator) for operator in batch.operators) for batch in latest)
    if most >= MOSTLY * max(batch.duration for batch in latest):
        return None
    return f"removing state rows took at most {duration(most)} in each of the latest {RECENT_BATCHES} batches"


RULE = Rule("eviction-storm", "warning", check, __doc__, LATE, ruled_out, linger=20.0, needs_harm=True)
