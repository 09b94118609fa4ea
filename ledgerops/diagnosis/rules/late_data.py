"""Late data: rows arrive later than the watermark allows, and are dropped.

Meaning: the watermark follows the newest event time, minus the delay given to `withWatermark`. Some rows have an event
    time before the watermark, and stateful operators discard them without an error.
Impact: counts and sums are too low, and joined pairs are missing. The dropped rows are in no output.
Diagnosis: 1. `sum by (operator) (increase(ledgerops_rows_dropped_by_watermark_total{query="QUERY"}[5m]))` shows how
    many rows were dropped. For aggregations it is a lower bound, because Spark counts after it has combined rows.
    2. `ledgerops_watermark_lag_seconds{query="QUERY"}` shows why. If it fell below the allowed lateness, a few rows
    have an event time in the future: see `watermark-jump`. If it did not change, many rows are late.
    3. `max by (topic, partition) (ledgerops_source_lag_seconds{query="QUERY"})` shows where. If one partition is far
    behind, see `partition-time-spread`; if none is, find the producer that sends late.
Mitigation: repair the producer that sends late. If rows may legitimately be that late, raise the delay of
    `withWatermark`: state grows in proportion, and the change applies from the next start of the query. To recover the
    dropped rows, replay them.
Evidence:
    rows_dropped_last_minute: sum of stateOperators[].numRowsDroppedByWatermark of one operator, over the batches that
        ended in the last 60 s.
    dropped_share: that number divided by the sum of numInputRows of the same batches, at most 1.
    oldest_row_behind_watermark_seconds: largest eventTime.watermark - eventTime.min over the batches that began in the
        last 60 s and dropped rows.
    allowed_lateness_seconds: the delay of `withWatermark` in the plan; the largest if there are several.
"""

from collections.abc import Iterator

from ledgerops.diagnosis.rule import Rule
from ledgerops.diagnosis.rules.rows_dropped import MIN_DROPPED_ROWS, at_least, dropped_rows
from ledgerops.diagnosis.rules.watermark_jump import jump
from ledgerops.model.finding import Component, Evidence, Finding, Remedy
from ledgerops.model.records import StateOperator
from ledgerops.signals.query_view import QueryView

MIN_DROPPED_SHARE = 0.001  # of the rows read in the last minute: below it single rows are late, not a producer
MIN_BEHIND_SECONDS = 1.0  # by which the oldest row must be behind; clocks are rounded to less


def check(view: QueryView) -> Iterator[Finding]:
    dropped, rows = dropped_rows(view)
    if not dropped or rows <= 0:
        return
    operator = max(dropped, key=lambda name: dropped[name])
    count = dropped[operator]
    share = min(1.0, count / rows)
    if count < MIN_DROPPED_ROWS or share < MIN_DROPPED_SHARE or jump(view) is not None:
        return
    at = view.batches[-1].ended
    delay = max(view.plan.watermarks.values(), default=None)
    evidence = [
        Evidence("rows_dropped_last_minute", float(count), "rows", f"< {MIN_DROPPED_ROWS}", at),
        Evidence("dropped_share", share, "ratio", f"< {MIN_DROPPED_SHARE:g}", at),
    ]
    lateness = _lateness(view)
    if lateness is not None:
        evidence.append(Evidence("oldest_row_behind_watermark_seconds", lateness, "seconds", "<= 0", at))
    if delay is not None:
        evidence.append(Evidence("allowed_lateness_seconds", delay, "seconds", "the delay of withWatermark", at))
    behind = f"; the oldest was {lateness:.0f} s behind the watermark" if lateness else ""
    allowed = f" (allowed lateness {delay:g} s)" if delay is not None else ""
    yield Finding(
        f"{at_least(operator)}{count:,} rows ({share:.1%}) were dropped as late by {operator} in the last minute"
        f"{allowed}{behind}",
        Component("operator", operator),
        tuple(evidence),
        (
            Remedy("find the producer that sends late", "the dropped rows are lost for this query"),
            Remedy(
                "allow more lateness with withWatermark"
                + (f", at least {delay + lateness:.0f} s" if delay is not None and lateness else ""),
                "only if rows may legitimately be that late; state grows in proportion",
                safe=False,
            ),
        ),
        confidence=min(0.95, 0.7 + share),
        began=next((batch.started for batch in view.run.recent if _of(batch.operators)), None),
    )


def _of(operators: tuple[StateOperator, ...]) -> int:
    return sum(operator.dropped_rows for operator in operators)


def _lateness(view: QueryView) -> float | None:
    """Seconds by which the oldest row of a batch with dropped rows was behind that batch's watermark."""
    found = [
        batch.watermark - batch.event_time_min
        for batch in view.run.recent
        if batch.watermark is not None and batch.event_time_min is not None and _of(batch.operators)
    ]
    return max((each for each in found if each > MIN_BEHIND_SECONDS), default=None)


def acquit(view: QueryView) -> str | None:
    """Rows that arrive on time behind a watermark that is too far ahead are not late."""
    found = jump(view)
    if found is None:
        return None
    return f"the watermark jumped {found.seconds:,.0f} s ahead of the clock: the dropped rows arrived on time"


RULE = Rule("late-data", "warning", check, __doc__, ("rows-dropped",), acquit, linger=10.0, at_rest=True)
