"""State that only grows, with nothing that will ever remove a row of it."""

from collections.abc import Iterator, Sequence

from ledgerops.diagnosis.facts import state_cost, state_room, state_trend
from ledgerops.diagnosis.limits import SHOWN_BATCHES
from ledgerops.model.records import Progress, StateOperator
from ledgerops.signals.query_view import QueryView

DAY_SECONDS = 86_400.0
MIN_GROWING_SECONDS = 30.0  # of growth without a watermark
MIN_PLANNED_ROWS = 100  # where the plan says that nothing removes them
# where it had stopped growing before in the same run, the initial fill of its keys is over
CHANGED_SECONDS = 12.0
MIN_OWN_TIME_SECONDS = 1800.0  # without a removal, where an operator may have timers
MIN_WATERMARK_ADVANCE_SECONDS = 2 * DAY_SECONDS  # by then windows of a day have closed


def unbounded(view: QueryView) -> Iterator[tuple[StateOperator, state_trend.Reports]]:
    """The operators of the newest batch whose state only grows, each with the batches that show it: in bytes where its
    rows are not counted."""
    batches = view.baseline.steady
    if len(batches) < state_trend.MIN_STATE_BATCHES:
        return
    came_far = _watermark_came_far(view, batches)
    for index, operator in enumerate(view.operators):
        if state_cost.lives(operator) and not state_cost.outlives(operator):
            continue  # a time to live may be a day
        if state_cost.watermark_bounds(view, operator) and not came_far:
            continue
        all_reported = state_room.counted(view, state_cost.reports(batches, index))
        reported = state_trend.growing(all_reported)
        if _only_grows(view, operator, reported, changed=len(reported) < len(all_reported)):
            yield operator, reported


def _watermark_came_far(view: QueryView, batches: Sequence[Progress]) -> bool:
    """Whether it has come so far that any window should have closed."""
    first = next((batch.watermark for batch in batches if batch.watermark is not None), None)
    last = next((batch.watermark for batch in reversed(batches) if batch.watermark is not None), None)
    if first is None or last is None:
        return False
    return last - first >= MIN_WATERMARK_ADVANCE_SECONDS + (view.plan.lateness or 0.0)


def _only_grows(view: QueryView, operator: StateOperator, reported: state_trend.Reports, changed: bool) -> bool:
    """Whether these batches of an operator show state that only grows; `changed`: it had stood still before."""
    enough = SHOWN_BATCHES if changed else state_trend.MIN_STATE_BATCHES
    if len(reported) < enough or state_trend.forgets(view, reported):
        return False
    least = CHANGED_SECONDS if changed else MIN_GROWING_SECONDS
    least = MIN_OWN_TIME_SECONDS if state_cost.keeps_own_time(view, operator) else least
    rows = MIN_PLANNED_ROWS if state_cost.has_no_timeout(view, operator) else state_trend.MIN_GROWTH_ROWS
    seconds, grown, read = state_trend.grown(reported)
    if seconds < least or grown < rows or read <= 0:
        return False
    return grown / read >= state_trend.MIN_KEPT_RATIO and state_trend.sustained(reported)
