"""Late data: rows come later than the watermark allows, and are dropped.

Meaning: the watermark follows the newest event time at the distance given to `withWatermark`. Some rows come with an
    event time that is older than that; the operators that keep state discard them, without an error.
Impact: counts and sums are too low, pairs are missing. The rows are not in any output.
Diagnosis: `sum by (operator) (increase(ledgerops_rows_dropped_by_watermark_total{query="QUERY"}[5m]))` says how many;
    for aggregations it is a lower bound, because Spark counts after it has combined rows. Ask which producer or
    partition is behind: `ledgerops_watermark_lag_seconds` that falls below the allowed lateness means that a few
    rows are ahead of their time (see `watermark-jump`); a lag that stays means that many are late.
Mitigation: repair the producer that sends late. If rows may rightly be that late, give `withWatermark` more: state
    grows in proportion, and the change holds from the next start of the query. What was dropped must be replayed.
Evidence:
    rows_dropped_last_minute: sum of stateOperators[].numRowsDroppedByWatermark of one operator over the batches that
        ended in the last 60 s.
    dropped_share: that number / sum of numInputRows of the same batches, at most 1.
    oldest_row_behind_watermark_seconds: eventTime.watermark less eventTime.min, the largest over the batches that
        began in the last 60 s and dropped rows.
    allowed_lateness_seconds: the delay of `withWatermark` in the plan, the largest if there are several.
"""

from collections.abc import Iterator

from ledgerops.diagnosis.rule import Rule
from ledgerops.diagnosis.rules.rows_dropped import ROWS, at_least, dropped_rows
from ledgerops.diagnosis.rules.watermark_jump import jump
from ledgerops.model.finding import Component, Evidence, Finding, Remedy
from ledgerops.model.records import StateOperator
from ledgerops.signals.query_view import QueryView

SHARE = 0.001  # of the rows read in the last minute: with fewer no producer is behind, rows are
BEHIND = 1.0  # seconds by which the oldest row must be behind; less is the rounding of clocks


def check(view: QueryView) -> Iterator[Finding]:
    dropped, rows = dropped_rows(view)
    if not dropped or rows <= 0:
        return
    operator = max(dropped, key=lambda name: dropped[name])
    count = dropped[operator]
    share = min(1.0, count / rows)
    if count < ROWS or share < SHARE or jump(view) is not None:
        return
    at = view.batches[-1].ended
    delay = max(view.plan.watermarks.values(), default=None)
    evidence = [
        Evidence("rows_dropped_last_minute", float(count), "rows", f"< {ROWS}", at),
        Evidence("dropped_share", share, "ratio", f"< {SHARE:g}", at),
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
            Remedy("find the producer that sends late", "the rows are lost for this query"),
            Remedy(
                "allow more lateness with withWatermark"
                + (f", at least {delay + lateness:.0f} s" if delay is not None and lateness else ""),
                "if rows may rightly be that late; state grows in proportion",
                safe=False,
            ),
        ),
        confidence=min(0.95, 0.7 + share),
        began=next((batch.started for batch in view.run.recent if _of(batch.operators)), None),
    )


def _of(operators: tuple[StateOperator, ...]) -> int:
    return sum(operator.dropped_rows for operator in operators)


def _lateness(view: QueryView) -> float | None:
    """How far the oldest row of a batch that dropped some was behind that batch's watermark."""
    found = [
        batch.watermark - batch.event_time_min
        for batch in view.run.recent
        if batch.watermark is not None and batch.event_time_min is not None and _of(batch.operators)
    ]
    return max((each for each in found if each > BEHIND), default=None)


def acquit(view: QueryView) -> str | None:
    """Rows that are on time, behind a watermark that ran ahead, are not late."""
    found = jump(view)
    if found is None:
        return None
    return f"the watermark leapt {found.seconds:,.0f} s ahead of the clock: rows that are dropped came on time"


RULE = Rule(
    slug="late-data",
    severity="warning",
    check=check,
    runbook=__doc__,
    explains=("rows-dropped",),
    acquit=acquit,
    linger=10.0,
    at_rest=True,
)
