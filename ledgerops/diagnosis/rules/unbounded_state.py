"""Unbounded state: an operator adds rows to its state and removes none.

Meaning: the operator adds a row to its state for nearly every row that it reads and removes none, because no watermark
    (or time to live, or timeout) defines when a row is no longer needed. Where the plan says so and a day's growth fits
    into the memory, the finding is information. RocksDB does not count rows with `trackTotalNumberOfRows` false: then
    the growth is that of its files, and is not found where merging them makes them smaller now and then.
Impact: memory, checkpoint and batch time grow without limit. In hours or days the query fails or becomes very slow. A
    restart does not help: the state is loaded from the checkpoint.
Diagnosis: 1. `predict_linear(ledgerops_state_memory_bytes{app="APP",query="QUERY"}[30m], 6 * 3600)` is the size in six
    hours. If it fits into the memory, there is time for a planned change.
    2. `rate(ledgerops_state_removed_rows_total{app="APP",query="QUERY"}[10m])` is 0. If it is above 0, rows do expire:
    see `state-growth`.
    3. Look at the plan: without a watermark (`ledgerops_watermark_timestamp_seconds{app="APP",query="QUERY"}` has no
    value) nothing can expire. With one, the event time is missing from the keys of the operator. A join needs a
    watermark on both inputs and a range of time between their rows; with one of these alone it removes nothing.
Mitigation: if memory runs out soon, restart with more executor memory to gain time. Then call `withWatermark` on the
    event time before the operator, and use the event time in its keys (`dropDuplicatesWithinWatermark`, a window, a
    time range in the join); give a `transformWithState` a time to live, an `applyInPandasWithState` a timeout. The
    checkpoint fixes the plan of a stateful query: the repaired query needs a new checkpoint.
Evidence:
    ledgerops_state_rows: numRowsTotal of the operator in the newest batch
    state_rows_growth_per_second: its growth / seconds, over the batches of the run (at most 200) without the first 10
        s, or from the third in a row on that grew by less than 0.05 numInputRows
    state_rows_removed: sum of numRowsRemoved over these batches
    state_rows_kept_per_row_read: growth in rows / sum of numInputRows of these batches without the oldest
    state_rows_in_a_day: state_rows_growth_per_second x 86400, of an operator that never removes any by its plan
    state_bytes: where rows are updated and numRowsTotal is 0: rocksdbSstFileSize of the newest batch
    state_bytes_growth_per_second: its growth / seconds, over the newest 30 of these batches, by bytes in place of rows
    state_bytes_in_a_day: growth of memoryUsedBytes, or of state_bytes / the same seconds x 86400
"""

from collections.abc import Iterator

from ledgerops.common.format import duration, size
from ledgerops.diagnosis.facts import state_cost, state_room, state_trend
from ledgerops.diagnosis.facts.unbounded import DAY_SECONDS, unbounded
from ledgerops.diagnosis.rule import Rule
from ledgerops.metrics.first_steps import GENERAL, first_step
from ledgerops.model.finding import DELAY_SECONDS, Component, Evidence, Finding, Remedy, Setting
from ledgerops.model.records import StateOperator
from ledgerops.signals.query_view import QueryView

BOUND_STATE = Remedy(
    "bound the state with withWatermark and the event time in the keys, or with a time to live",
    "only then can the operator know which rows are no longer needed; this needs a new checkpoint",
    safe=False,
    settings=(Setting(DELAY_SECONDS, None),),
)
BOUND_SIDES = Remedy(
    "call withWatermark on each input of the join, and bound the time between their rows in its condition",
    "each side keeps its rows until the other's watermark is past them; this needs a new checkpoint",
    safe=False,
    settings=(Setting(DELAY_SECONDS, None),),
)
OTHER_MODE = Remedy(
    "write in update mode, with withWatermark and the event time in the keys",
    "in complete mode a watermark removes nothing; this needs a new checkpoint",
    safe=False,
)
HOW_LONG = first_step("unbounded-state", GENERAL, "that is the bound it needs, and the time that is left to set it")
SET_TIME = Remedy(
    "give the function a timeout, timers or a time to live",
    "a key is then removed some time after its last row; a watermark alone removes none of them",
    safe=False,
)
SET_TIMEOUT = first_step(
    "unbounded-state", "no timeout", "nothing else removes them: the operator was started without a timeout"
)


def check(view: QueryView) -> Iterator[Finding]:
    for operator, reported in unbounded(view):
        yield _finding(view, operator, reported)


def _finding(view: QueryView, operator: StateOperator, reported: state_trend.Reports) -> Finding:
    (first, begin), (last, end) = reported[0], reported[-1]
    seconds, grown, read = state_trend.grown(reported)
    no_timeout, no_time = state_cost.has_no_timeout(view, operator), state_cost.has_no_time(view, operator)
    planned, watermark_bounds = no_timeout or no_time, state_cost.watermark_bounds(view, operator)
    own_time = state_cost.is_function(operator)
    counted = operator.rows > 0  # else `grown` is bytes
    bytes_grown = end.memory_bytes - begin.memory_bytes if counted else grown
    daily_rows, daily_bytes = (each / seconds * DAY_SECONDS for each in (grown, bytes_grown))
    kept = f"< {state_trend.MIN_KEPT_RATIO:g}"
    removed = Evidence("state_rows_removed", 0.0, "rows", "> 0", last.ended)
    evidence = [
        Evidence("ledgerops_state_rows", float(end.rows), "rows", "a plateau", last.ended),
        Evidence("state_rows_growth_per_second", grown / seconds, "rows/s", "~ 0", last.ended),
        removed,
        Evidence("state_rows_kept_per_row_read", grown / read, "ratio", kept, last.ended),
        *[Evidence("state_rows_in_a_day", daily_rows, "rows", "bounded", last.ended)] * planned,
    ]
    if not counted:
        evidence = [
            Evidence("state_bytes", float(end.rows), "bytes", "a plateau", last.ended),
            Evidence("state_bytes_growth_per_second", grown / seconds, "bytes/s", "~ 0", last.ended),
            removed,
        ]
    if daily_bytes > 0:
        evidence.append(Evidence("state_bytes_in_a_day", daily_bytes, "bytes", "bounded", last.ended))
    ahead = [f"{daily_rows:,.0f} rows"] * (planned and counted) + [size(daily_bytes)] * (daily_bytes > 0)
    why = "the watermark removes nothing" if watermark_bounds else "there is no watermark"
    complete = state_cost.keeps_all(view, operator)
    join = no_time and operator.name.startswith("symmetricHashJoin")
    one_sided = join and 0 < len(view.plan.watermarks) < len(last.sources)
    if complete:
        why = "complete mode keeps every group"
    if no_timeout:
        why = "it has no timeout"
    elif own_time:
        why = "no timer, timeout or time to live ended a key of it"
    elif join:
        why = "the join does not bound the time between its rows"
        if one_sided:
            why = f"a watermark is on `{'`, `'.join(view.plan.watermarks)}` only, or {why}"
    elif no_time:
        why = "no column of its keys is the event time"
    bound = SET_TIME if own_time else OTHER_MODE if complete else BOUND_SIDES if one_sided else BOUND_STATE
    amounts = f"{grown:,} rows, to {end.rows:,}," if counted else f"{size(grown)} on the disk, to {size(end.rows)},"
    room = state_room.room_bytes(view)
    fits = room is None or daily_bytes < room  # a day's growth; of state that is known to grow by the plan alone
    return Finding(
        f"the state of {operator.name} grew by {amounts} in {duration(seconds)} and removed none: {why}"
        + (f"; at this rate it grows by {' and '.join(ahead)} a day" if ahead else ""),
        Component("operator", operator.name),
        tuple(evidence),
        (SET_TIMEOUT if no_timeout else HOW_LONG, bound),
        confidence=0.7 if watermark_bounds and not no_time else 0.9,
        began=first.started,
        at_most="info" if planned and fits else "warning",
    )


RULE = Rule("unbounded-state", "warning", check, __doc__, ("state-growth",), linger=10.0, at_rest=True)
