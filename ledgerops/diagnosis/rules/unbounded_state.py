"""Unbounded state: an operator adds rows to its state and removes none.

Meaning: the operator adds a row to its state for nearly every row that it reads and removes none, because no watermark
    (or time to live) defines when a row is no longer needed.
Impact: memory, checkpoint and batch time grow without limit. In hours or days the query fails or becomes very slow. A
    restart does not help: the state is loaded from the checkpoint.
Diagnosis: 1. `predict_linear(ledgerops_state_memory_bytes{query="QUERY"}[30m], 6 * 3600)` is the size in six hours. If
    it fits into the memory, there is time for a planned change.
    2. `rate(ledgerops_state_removed_rows_total{query="QUERY"}[10m])` is 0. If it is above 0, rows do expire: see
    `state-growth`.
    3. Look at the plan: without a watermark (`ledgerops_watermark_timestamp_seconds{query="QUERY"}` has no value)
    nothing can expire. With one, the event time is missing from the keys of the operator.
Mitigation: if memory runs out soon, restart with more executor memory to gain time. Then call `withWatermark` on the
    event time before the operator, and use the event time in its keys (`dropDuplicatesWithinWatermark`, a window, a
    time range in the join); give a `transformWithState` a time to live. The checkpoint fixes the plan of a stateful
    query: the repaired query needs a new checkpoint.
Evidence:
    ledgerops_state_rows: numRowsTotal of the operator in the newest batch
    state_rows_growth_per_second: (numRowsTotal of the newest batch - that of the oldest) / seconds between their ends,
        over the batches of the run (at most 200), without its first 10 s. If numRowsTotal grew by less than 0.05
        numInputRows in three batches in a row, only from the newest such batch on
    state_rows_removed: sum of numRowsRemoved over the same batches
    state_rows_kept_per_row_read: the same growth in rows, divided by the sum of numInputRows of these batches without
        the oldest
    state_bytes_in_a_day: (memoryUsedBytes of the newest batch - that of the oldest) / the same seconds x 86400
"""

from collections.abc import Iterator, Sequence
from math import sqrt

from ledgerops.diagnosis import state_cost
from ledgerops.diagnosis.rule import Rule
from ledgerops.model.finding import Component, Evidence, Finding, Remedy
from ledgerops.model.records import Progress, StateOperator
from ledgerops.signals.query_view import QueryView

DAY_SECONDS = 86_400.0
MIN_BATCHES = 10
MIN_SECONDS = 30.0  # of growth without a watermark
MIN_GROWTH_ROWS = 1000  # by which the state must have grown
# where it had stopped growing before in the same run, the initial fill of its keys is over
CHANGED_BATCHES, CHANGED_SECONDS = 6, 12.0
# growth per row in the later half against the earlier. A bounded set of N keys, drawn evenly, brings it down by
# (growth / 2 N): so only where N is some 16 times as many as were seen does it look unbounded
MIN_SUSTAINED_RATIO = 0.97
MAX_DEVIATIONS = 2.0  # standard deviations of that ratio, where only some of the rows bring a new key
MIN_WATERMARK_ADVANCE_SECONDS = 2 * DAY_SECONDS  # by then windows of a day have closed
MIN_OWN_TIME_SECONDS = 1800.0  # without a removal, where an operator has timers or a time to live
BOUND_STATE = Remedy(
    "bound the state with withWatermark and the event time in the keys, or with a time to live",
    "only then can the operator know which rows are no longer needed; this needs a new checkpoint",
    safe=False,
)


def check(view: QueryView) -> Iterator[Finding]:
    if view.last is None or not view.last.operators:
        return
    batches = view.baseline.steady
    if len(batches) < MIN_BATCHES or not _may_never_forget(view, batches):
        return
    for index, operator in enumerate(view.last.operators):
        finding = _judge(view, operator, state_cost.reports(batches, index))
        if finding is not None:
            yield finding


def _may_never_forget(view: QueryView, batches: Sequence[Progress]) -> bool:
    """Without a watermark at once; with one only when it has come so far that any window should have closed."""
    if not state_cost.has_watermark(view):
        return True
    marks = [batch.watermark for batch in batches if batch.watermark is not None]
    return bool(marks) and marks[-1] - marks[0] >= MIN_WATERMARK_ADVANCE_SECONDS


def _judge(
    view: QueryView, operator: StateOperator, all_reported: Sequence[tuple[Progress, StateOperator]]
) -> Finding | None:
    """The finding on one operator, by the batches that report it; None where its state does not look unbounded."""
    reported = state_cost.growing(all_reported)
    changed = len(reported) < len(all_reported)
    if len(reported) < (CHANGED_BATCHES if changed else MIN_BATCHES) or state_cost.forgets(view, reported):
        return None
    (first, begin), (last, end) = reported[0], reported[-1]
    seconds = last.ended - first.ended
    needed = (
        MIN_OWN_TIME_SECONDS if state_cost.keeps_own_time(operator) else CHANGED_SECONDS if changed else MIN_SECONDS
    )
    grown = end.rows - begin.rows
    read = sum(batch.rows for batch, _ in reported[1:])
    if (
        seconds < needed
        or grown < MIN_GROWTH_ROWS
        or read <= 0
        or grown / read < state_cost.MIN_KEPT_RATIO
        or not _sustained(reported)
    ):
        return None
    daily_bytes = (end.memory_bytes - begin.memory_bytes) / seconds * DAY_SECONDS
    evidence = [
        Evidence("ledgerops_state_rows", float(end.rows), "rows", "a plateau", last.ended),
        Evidence("state_rows_growth_per_second", grown / seconds, "rows/s", "~ 0", last.ended),
        Evidence("state_rows_removed", 0.0, "rows", "> 0", last.ended),
        Evidence("state_rows_kept_per_row_read", grown / read, "ratio", f"< {state_cost.MIN_KEPT_RATIO:g}", last.ended),
    ]
    ahead = ""
    if daily_bytes > 0:
        evidence.append(Evidence("state_bytes_in_a_day", daily_bytes, "bytes", "bounded", last.ended))
        ahead = f"; at this rate it grows by {daily_bytes / 2**30:.1f} GiB a day"
    has_watermark = state_cost.has_watermark(view)
    why = "the watermark removes nothing" if has_watermark else "there is no watermark"
    return Finding(
        f"the state of {operator.name} grew by {grown:,} to {end.rows:,} rows in {seconds:.0f} s and removed none: "
        f"{why}{ahead}",
        Component("operator", operator.name),
        tuple(evidence),
        (BOUND_STATE,),
        confidence=0.7 if has_watermark else 0.9,
        began=first.started,
    )


def _sustained(reported: Sequence[tuple[Progress, StateOperator]]) -> bool:
    """Whether each row read in the later half leaves nearly as much state as in the earlier."""
    middle = len(reported) // 2
    per_row, chance = [], 0.0
    for half in (reported[: middle + 1], reported[middle:]):
        read = sum(batch.rows for batch, _ in half[1:])
        share = (half[-1][1].rows - half[0][1].rows) / read if read else 0.0
        per_row.append(share)
        if 0 < share < 1:
            chance += (1 - share) / (share * read)
    return per_row[0] > 0 and per_row[1] >= (MIN_SUSTAINED_RATIO - MAX_DEVIATIONS * sqrt(chance)) * per_row[0]


RULE = Rule("unbounded-state", "warning", check, __doc__, ("state-growth",), linger=10.0, at_rest=True)
