"""Rows dropped: stateful operators discard rows that are older than the watermark.

Meaning: rows arrived behind the watermark, and stateful operators discarded them without an error. This finding does
    not explain why the rows are behind: see the root cause named with it.
Impact: counts and sums are too low, and joined pairs are missing. This is permanent: the rows are in no output of this
    query.
Diagnosis: 1. Read the root cause named with this finding. `late-data` means that the rows are old, `watermark-jump`
    that the watermark is too far ahead, and `partition-time-spread` that one partition is read later than the others.
    2. `sum by (operator) (increase(ledgerops_rows_dropped_by_watermark_total{query="QUERY"}[5m]))` shows how many rows
    were dropped. For aggregations it is a lower bound, because Spark counts after it has combined the rows of a batch.
    3. Without a root cause, `ledgerops_watermark_lag_seconds{query="QUERY"}` helps: if it fell below the allowed
    lateness, the watermark is too far ahead; if it did not, the rows are late.
Mitigation: remove the cause first: a longer lateness does not help if the watermark is too far ahead. To recover the
    dropped rows, run the query over the same input again with fresh state.
Evidence:
    rows_dropped_last_minute: sum of stateOperators[].numRowsDroppedByWatermark of one operator, over the batches that
        ended in the last 60 s.
    dropped_share: that number divided by the sum of numInputRows of the same batches, at most 1.
    rows_dropped_since_began: the same sum over all batches of the run since the first that dropped rows, within the
        latest 200 batches.
"""

from collections.abc import Iterator
from itertools import takewhile

from ledgerops.diagnosis.rule import Rule
from ledgerops.model.finding import Component, Evidence, Finding, Remedy
from ledgerops.signals.memo import once
from ledgerops.signals.query_view import QueryView
from ledgerops.signals.run import WINDOW_SECONDS

MIN_DROPPED_ROWS = 50  # in the last minute; fewer are stragglers after a rebalance or a restart
MIN_DROPPED_SHARE = 0.001  # of the rows read in that time; as in the alert of this name
CLEARED_SECONDS = 20.0  # without another dropped row, or
CLEARED_INTERVALS = 4.0  # trigger intervals without one: then it is over
EXACT = ("dedupe", "dedupeWithinWatermark")  # these see each row; others count after rows were combined


def check(view: QueryView) -> Iterator[Finding]:
    dropped, rows = dropped_rows(view)
    if not dropped or rows <= 0:
        return
    operator = max(dropped, key=lambda name: dropped[name])
    count = dropped[operator]
    share = min(1.0, count / rows)
    if count < MIN_DROPPED_ROWS or share < MIN_DROPPED_SHARE:
        return
    at = view.batches[-1].ended
    drops = [
        (batch, number)
        for batch in view.batches
        if (number := sum(each.dropped_rows for each in batch.operators if each.name == operator))
    ]
    yield Finding(
        f"{at_least(operator)}{count:,} rows ({share:.1%} of those read) were dropped by {operator} in the last minute",
        Component("operator", operator),
        (
            Evidence("rows_dropped_last_minute", float(count), "rows", f"< {MIN_DROPPED_ROWS}", at),
            Evidence("dropped_share", share, "ratio", f"< {MIN_DROPPED_SHARE:g}", at),
            Evidence("rows_dropped_since_began", float(sum(number for _, number in drops)), "rows", "0", at),
        ),
        (
            Remedy(
                "remove the named cause, then process the affected time range again with fresh state",
                "the dropped rows are in no output; the input may still have them",
                safe=False,
            ),
        ),
        confidence=0.95,
        began=drops[0][0].started,
    )


def at_least(operator: str) -> str:
    """The words before a number of dropped rows: operators that combine rows first count too few."""
    return "" if operator.split("-")[0] in EXACT else "at least "


@once
def dropped_rows(view: QueryView) -> tuple[dict[str, int], int]:
    """Rows dropped by each operator and rows read in the batches of the last minute; empty once no rows are dropped."""
    dropped: dict[str, int] = {}
    if view.last is None or not view.last.operators:
        return dropped, 0
    fresh = list(takewhile(lambda batch: batch.ended >= view.now - WINDOW_SECONDS, reversed(view.batches)))
    for batch in fresh:
        for operator in batch.operators:
            if operator.dropped_rows:
                dropped[operator.name] = dropped.get(operator.name, 0) + operator.dropped_rows
    over = max(CLEARED_SECONDS, CLEARED_INTERVALS * (view.trigger.interval or 0.0))
    if not any(each.dropped_rows for batch in fresh if batch.ended >= view.now - over for each in batch.operators):
        return {}, 0
    return dropped, sum(batch.rows for batch in fresh)


RULE = Rule("rows-dropped", "warning", check, __doc__, linger=10.0, at_rest=True)
