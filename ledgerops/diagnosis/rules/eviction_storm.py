"""Eviction storm: a very large number of state rows expire at once, and one batch removes them all.

Meaning: the watermark passed the end of many windows, sessions or time limits in a single step. That batch removes far
    more rows of state than usual, and the removal takes most of its time.
Impact: that batch takes many times as long as usual and delays all results, and rows pile up meanwhile. It happens
    again with the next window (at midnight for windows of a day) or the next jump of the watermark.
Diagnosis: 1. `increase(ledgerops_state_removed_rows_total{app="APP",query="QUERY"}[1m])` has a spike at the same time
    as `ledgerops_batch_duration_seconds`. If it has none, removal is not the cause.
    2. `ledgerops_watermark_timestamp_seconds{app="APP",query="QUERY"}` shows how the watermark moved. A step means that
    event time jumped, for example after a pause. A steady slope means that many keys expire at the same time.
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

from ledgerops.common.format import duration
from ledgerops.diagnosis.confidence import confidence
from ledgerops.diagnosis.facts.removals import longest_removal, storms
from ledgerops.diagnosis.limits import MOSTLY, VERY_FAR_TIMES
from ledgerops.diagnosis.rule import Rule
from ledgerops.metrics.first_steps import GENERAL, first_step
from ledgerops.model.finding import Component, Evidence, Finding, Remedy
from ledgerops.signals.baseline import RECENT_BATCHES
from ledgerops.signals.query_view import QueryView

WAIT = first_step("eviction-storm", GENERAL, "the rows of one step of the watermark are removed once")
SPREAD = Remedy(
    "spread the ends of windows or sessions over time, or limit what a batch reads after a pause",
    "rows that expire in one step of the watermark are removed in one batch; more cores help only up to the number of "
    "state partitions, which the checkpoint fixes",
    safe=False,
)


def check(view: QueryView) -> Iterator[Finding]:
    for storm in storms(view):
        batch, operator, usually, seconds = storm.batch, storm.operator, storm.usual_rows, storm.seconds
        limit, at = f"< {VERY_FAR_TIMES * usually:,.0f}", batch.ended
        yield Finding(
            f"{operator.name} removed {operator.removed:,} rows of its state in one batch (usually {usually:,.0f}), "
            f"which took {duration(seconds)} of {duration(batch.duration)}",
            Component("operator", operator.name),
            (
                Evidence("state_rows_removed", operator.removed, "rows", limit, at),
                Evidence("usual_state_rows_removed", usually, "rows", "the usual", at),
                Evidence("state_removal_wall_seconds", seconds, "seconds", "a small part", at),
                Evidence("batch_seconds", batch.duration, "seconds", f"~ {storm.usual_seconds:.1f}", at),
            ),
            (WAIT, SPREAD),
            confidence=confidence(seconds, MOSTLY * batch.duration),
            began=batch.started,
            share=min(1.0, seconds / batch.duration),
            saving_seconds=seconds,
        )


def ruled_out(view: QueryView) -> str | None:
    known = longest_removal(view)
    if known is None or known.seconds >= MOSTLY * known.batch_seconds:
        return None
    return f"removing state rows took at most {duration(known.seconds)} in each of the latest {RECENT_BATCHES} batches"


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
