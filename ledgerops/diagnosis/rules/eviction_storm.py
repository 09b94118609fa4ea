"""Eviction storm: a very large number of state rows expire at once, and one batch removes them all.

Meaning: the watermark passed the end of many windows, sessions or time limits in a single step. That batch removes far
    more rows of state than usual, and the removal takes most of its time.
Impact: that batch takes many times as long as usual and delays all results, and rows pile up meanwhile. It happens
    again with the next window (at midnight for windows of a day) or the next jump of the watermark.
Diagnosis: 1. `increase(ledgerops_state_removed_rows_total{query="QUERY"}[1m])` has a spike at the same time as
    `ledgerops_batch_duration_seconds`. If it has none, removal is not the cause.
    2. `ledgerops_watermark_timestamp_seconds{query="QUERY"}` shows how the watermark moved. A step means that event
    time jumped, for example after a pause. A steady slope means that many keys expire at the same time.
    3. Check how often it happens. Once after a restart needs no change; at the end of each window it will happen again.
Mitigation: wait for the batch to end; it removes the rows only once. To avoid the next one, use shorter windows or an
    offset by key, and no more lateness than needed for sessions and deduplication. Limit what one batch reads after a
    pause (`maxOffsetsPerTrigger`), so that event time does not jump. RocksDB finds expired rows by scanning: give it
    more block cache.
Evidence:
    state_rows_removed: numRowsRemoved of the operator in the named batch, the newest such of the latest 3
    usual_state_rows_removed: its median over the other batches of the run (at most 200) without the first 10 s
    state_removal_wall_seconds: allRemovalsTimeMs / 1000 / min(numShufflePartitions, cores) of that batch
    batch_seconds: durationMs.triggerExecution / 1000 of that batch
"""

from collections.abc import Iterator
from statistics import median

from ledgerops.common.format import duration
from ledgerops.diagnosis.facts import state_cost
from ledgerops.diagnosis.facts.state_trend import MIN_GROWTH_ROWS
from ledgerops.diagnosis.limits import CLEAR_TIMES, MOSTLY
from ledgerops.diagnosis.rule import Rule
from ledgerops.metrics.first_steps import GENERAL, first_step
from ledgerops.model.finding import Component, Evidence, Finding, Remedy
from ledgerops.model.records import Progress, StateOperator
from ledgerops.signals.baseline import MIN_USUAL_BATCHES, RECENT_BATCHES
from ledgerops.signals.query_view import QueryView

MIN_TIMES_USUAL_ROWS = 10.0  # removed rows over those of other batches
MIN_SPIKE_SECONDS = 3.0  # over the usual time
WAIT = first_step("eviction-storm", GENERAL, "the rows of one step of the watermark are removed once")
SPREAD = Remedy(
    "spread the ends of windows or sessions over time, or limit what a batch reads after a pause",
    "rows that expire in one step of the watermark are removed in one batch; more cores help only up to the number of "
    "state partitions, which the checkpoint fixes",
    safe=False,
)


def check(view: QueryView) -> Iterator[Finding]:
    if view.last is None or not view.last.operators:
        return
    for batch in reversed(view.baseline.recent):
        found = list(_storms(view, batch))
        if found:
            yield from found
            return


def _storms(view: QueryView, batch: Progress) -> Iterator[Finding]:
    if batch.duration < MIN_SPIKE_SECONDS:  # it cannot have lasted that long beyond the usual
        return
    others = [each for each in view.baseline.steady if each is not batch]
    if len(others) < MIN_USUAL_BATCHES:
        return
    usual = median(each.duration for each in others)
    if (
        batch.duration < CLEAR_TIMES * max(usual, view.trigger.interval or 0.0)
        or batch.duration - usual < MIN_SPIKE_SECONDS
    ):
        return
    for index, operator in enumerate(batch.operators):
        if operator.removed < MIN_GROWTH_ROWS:
            continue
        removed = median(state.removed for _, state in state_cost.reports(others, index))
        seconds = _removal_seconds(view, operator)
        if operator.removed < MIN_TIMES_USUAL_ROWS * removed or seconds < MOSTLY * batch.duration:
            continue
        limit, at = f"< {MIN_TIMES_USUAL_ROWS * removed:,.0f}", batch.ended
        yield Finding(
            f"{operator.name} removed {operator.removed:,} rows of its state in one batch (usually {removed:,.0f}), "
            f"which took {duration(seconds)} of {duration(batch.duration)}",
            Component("operator", operator.name),
            (
                Evidence("state_rows_removed", operator.removed, "rows", limit, at),
                Evidence("usual_state_rows_removed", removed, "rows", "the usual", at),
                Evidence("state_removal_wall_seconds", seconds, "seconds", "a small part", at),
                Evidence("batch_seconds", batch.duration, "seconds", f"~ {usual:.1f}", at),
            ),
            (WAIT, SPREAD),
            confidence=min(0.95, 0.5 + 0.4 * seconds / batch.duration),
            began=batch.started,
            share=min(1.0, seconds / batch.duration),
            saving_seconds=seconds,
        )


def _removal_seconds(view: QueryView, operator: StateOperator) -> float:
    """Wall seconds of a batch in which an operator removed rows."""
    return operator.removal_seconds / state_cost.parallel_tasks(view, operator)


def ruled_out(view: QueryView) -> str | None:
    if view.cluster.cores is None:
        return None  # task seconds over an unknown number of slots rule nothing out
    latest = view.baseline.recent
    if len(latest) < RECENT_BATCHES or not latest[-1].operators:
        return None
    most = max(sum(_removal_seconds(view, operator) for operator in batch.operators) for batch in latest)
    longest = max(batch.duration for batch in latest)
    if most >= MOSTLY * longest:
        return None
    return f"removing state rows took at most {duration(most)} in each of the latest {len(latest)} batches"


RULE = Rule(
    "eviction-storm",
    "warning",
    check,
    __doc__,
    ("falling-behind", "trigger-overrun"),
    ruled_out,
    linger=20.0,
    needs_harm=True,
)
