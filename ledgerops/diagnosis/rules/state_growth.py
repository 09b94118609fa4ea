"""State growth: the state will soon fill the available memory or disk, or has stopped shrinking.

Meaning: the state of an operator grows steadily and will soon fill the heap, the memory or the disk. (Where timers, or
    the end of a window or of a join's range, may still remove rows: it grew for as long as that will take.) Or the
    operator removed rows at regular intervals, and has removed none for far longer while its watermark does not
    advance. Or its rows get larger, as the lists of `collect_list` without a window. A watermark keeps each row for its
    allowed lateness at least: of a day that may be too many.
Impact: garbage collection, then lost executors (HDFS-backed store), or a killed container and a full disk (RocksDB). A
    restart does not help: the state is loaded from the checkpoint.
Diagnosis: 1. `predict_linear(ledgerops_state_memory_bytes{app="APP",query="QUERY"}[10m], 3600)` must fit into memory.
    2. `ledgerops_watermark_timestamp_seconds{app="APP",query="QUERY"}` must advance. If it does not, one input stops
    it: see `watermark-stalled`.
    3. If it advances, check `rate(ledgerops_state_removed_rows_total{app="APP",query="QUERY"}[10m])`. At 0, no row ever
    expires: see `unbounded-state`; above 0, more keys arrive than expire.
Mitigation: if memory runs out soon, restart with more executor memory to gain time. Then get the watermark moving, or
    bound the state. Of rows that get larger keep only what the result needs: a number, the newest values, or a window.
    An allowed lateness that is longer than rows are late can be shortened, with the same checkpoint. RocksDB instead of
    the HDFS-backed store also gains time, but the checkpoint fixes the provider: that takes a new one.
Evidence:
    ledgerops_state_rows: numRowsTotal of the operator in the newest batch
    state_bytes_per_row: of rows that get larger: state_bytes / numRowsTotal of the newest batch
    state_bytes: memoryUsedBytes of the operator in the newest batch, or for the disk rocksdbSstFileSize
    state_bytes_growth_per_second: its growth over the newest batches of the run (at most 200; for the disk 30) without
        the first 10 s, from the last that removed rows on, or from the third in a row that hardly grew (of rows that
        get larger: in bytes)
    room_bytes: what is left: the heap (maxMemory / 0.6 + 300 MiB of each active executor) - memoryUsedBytes of all
        operators; or memory_available_bytes, or disk_free_bytes, of the newest record `host`
    seconds_to_limit: room_bytes / state_bytes_growth_per_second
    allowed_lateness_seconds: the largest delay of `withWatermark` in the plan, where it is longer than the limit lasts
    seconds_without_removal: end of the newest batch - that of the last with numRowsRemoved > 0
    usual_seconds_without_removal: longest time between two such batches before
    earlier_state_rows_max: largest numRowsTotal of the operator up to the last of them
"""

from collections.abc import Iterator

from ledgerops.common.format import duration, size
from ledgerops.diagnosis.facts import state_cost, state_trend
from ledgerops.diagnosis.facts.state_room import filling, fills_little, in_bytes, larger, soonest
from ledgerops.diagnosis.facts.state_trend import MIN_GROWTH_ROWS, MIN_STATE_BATCHES, Reports
from ledgerops.diagnosis.limits import CLEAR_TIMES, VERY_LONG_SECONDS
from ledgerops.diagnosis.rule import Rule
from ledgerops.metrics.first_steps import GENERAL, first_step
from ledgerops.model.finding import Component, Evidence, Finding, Remedy
from ledgerops.signals.query_view import QueryView


def check(view: QueryView) -> Iterator[Finding]:
    for index, operator in enumerate(view.operators):
        reports = [] if operator.removed else state_cost.reports(view.baseline.steady, index)
        if len(reports) < MIN_STATE_BATCHES:
            continue
        many = operator.rows >= MIN_GROWTH_ROWS
        found = _stopped(view, reports) or _towards(view, reports) if many else None
        if found := found or _larger_rows(view, reports):
            yield found


def _stopped(view: QueryView, reports: Reports) -> Finding | None:
    """It removed rows regularly, and does so no longer, with a watermark that does not move."""
    found = state_trend.without_removal(reports)
    if found is None:
        return None
    (newest, operator), (pause, usual, before, since) = reports[-1], found
    marks = {batch.watermark for batch, _ in since[len(since) // 2 :]}
    if pause < max(VERY_LONG_SECONDS, CLEAR_TIMES * usual) or operator.rows < CLEAR_TIMES * before or len(marks) > 1:
        return None
    limit = soonest(view, since)
    evidence = [
        Evidence("ledgerops_state_rows", operator.rows, "rows", f"<= {before:,}", newest.ended),
        Evidence("earlier_state_rows_max", before, "rows", "the usual", newest.ended),
        Evidence("seconds_without_removal", pause, "seconds", f"<= {usual:.0f}", newest.ended),
        Evidence("usual_seconds_without_removal", usual, "seconds", "the usual", newest.ended),
    ]
    return Finding(
        f"the state of {operator.name} grew to {operator.rows:,} rows (at most {before:,} before): none was removed "
        f"for {duration(pause)} (at most {duration(usual)} before), and the watermark does not advance",
        Component("operator", operator.name),
        (*evidence, *(limit.evidence(newest.ended) if limit else ())),
        (first_step("state-growth", GENERAL, "the operator removes a row only when the watermark has passed it"),),
        confidence=0.8,
        began=since[0][0].ended,
    )


def _towards(view: QueryView, reports: Reports) -> Finding | None:
    """It will be full at this rate, of more and more rows."""
    found = filling(view, reports)
    if found is None:
        return None
    reports, limit = found
    newest, operator = reports[-1]
    bound = NARROW if state_cost.watermark_bounds(view, operator) else BOUND
    return Finding(
        f"the state of {operator.name} grows by {size(limit.rate)} per second: {limit.what} will be full in "
        f"{duration(limit.seconds)}"
        + (f"; the watermark keeps each row for {duration(limit.lateness)} at least" if limit.lateness else ""),
        Component("operator", operator.name, limit.what),
        (
            Evidence("ledgerops_state_rows", operator.rows, "rows", "a plateau", newest.ended),
            *limit.evidence(newest.ended),
        ),
        (KEPT, SHORTEN) if limit.lateness else (STEADY, bound),
        confidence=0.7,
        began=reports[0][0].ended,
    )


def _larger_rows(view: QueryView, reports: Reports) -> Finding | None:
    """It will be full at this rate, of rows that get larger, and not of more rows: lists of all that a key ever had."""
    found = filling(view, in_bytes(view, reports))
    if found is None:
        return None
    sizes, limit = found
    if (grown := larger(reports, sizes)) is None:
        return None
    (first, _), (newest, operator) = sizes[0], reports[-1]
    ago = duration(newest.ended - first.ended)
    return Finding(
        f"the rows of the state of {operator.name} only get larger: each of the {operator.rows:,} takes "
        f"{size(grown.now)} of {limit.what}, {size(grown.before)} {ago} before; at {size(limit.rate)} per second it "
        f"will be full in {duration(limit.seconds)}",
        Component("operator", operator.name, limit.what),
        (Evidence("state_bytes_per_row", grown.now, "bytes", "a plateau", newest.ended), *limit.evidence(newest.ended)),
        (LARGER, SHORTEN if limit.lateness else BOUND),
        confidence=0.7,
        began=first.ended,
    )


STEADY = first_step("state-growth", "steady", "the state grows steadily until rows are removed from it")
LARGER = first_step("state-growth", "larger rows", "what is only ever added to a row has no bound")
KEPT = first_step("state-growth", "lateness", "no row leaves the state before the watermark has passed it")
SHORTEN = Remedy(
    "shorten the allowed lateness of withWatermark, and restart with the same checkpoint",
    "rows that come later than that are dropped",
    safe=False,
)
BOUND = Remedy(
    "bound the state with a watermark or a time to live",
    "only then are rows removed from it; this needs a new checkpoint",
    safe=False,
)
NARROW = Remedy(
    "shorten its windows, or the time that its join allows between two rows",
    "no row leaves the state before both that and the allowed lateness are over; this needs a new checkpoint",
    safe=False,
)
RULE = Rule("state-growth", "warning", check, __doc__, ("gc-pressure",), fills_little, linger=30.0, at_rest=True)
