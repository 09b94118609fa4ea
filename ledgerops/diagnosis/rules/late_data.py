"""Late data: rows come later than the watermark allows, and are dropped.

Meaning: the watermark follows the newest event time at the distance given to `withWatermark`. Rows older than it are
    discarded by the operators that keep state, without an error.
Impact: counts and sums are too low, pairs are missing. The rows are not in any output.
Diagnosis: `sum by (operator) (increase(ledgerops_rows_dropped_by_watermark_total{query="QUERY"}[5m]))` says how many;
    for aggregations it is a lower bound, because Spark counts after it has combined rows. Ask which producer or
    partition is behind: `ledgerops_watermark_lag_seconds` that falls below the allowed lateness means that a few
    rows are ahead of their time; a lag that stays means that many are late.
Mitigation: repair the producer that sends late. If rows may rightly be that late, give `withWatermark` more: state
    grows in proportion, and the change holds from the next start of the query. What was dropped must be replayed.
"""

from collections.abc import Iterator

from ledgerops.diagnosis.model import Component, Evidence, Finding, Remedy, Rule
from ledgerops.records import StateOperator
from ledgerops.view import WINDOW, View

ROWS = 50  # dropped in the last minute; fewer are stragglers after a rebalance or a restart
SHARE = 0.005  # of the rows read meanwhile
EXACT = ("dedupe", "dedupeWithinWatermark")  # these see each row; others count after rows were combined


def check(view: View) -> Iterator[Finding]:
    dropped, rows = dropped_rows(view)
    if not dropped or rows <= 0:
        return
    operator = max(dropped, key=lambda name: dropped[name])
    count = dropped[operator]
    share = min(1.0, count / rows)
    if count < ROWS or share < SHARE:
        return
    at = view.recent[-1].ended
    at_least = "" if operator.split("-")[0] in EXACT else "at least "
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
        f"{at_least}{count:,} rows ({share:.1%}) were dropped as late by {operator} in the last minute"
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
        began=next((batch.started for batch in view.recent if _of(batch.operators)), None),
    )


def _of(operators: tuple[StateOperator, ...]) -> int:
    return sum(operator.dropped_rows for operator in operators)


def dropped_rows(view: View) -> tuple[dict[str, int], int]:
    """Rows dropped by operator, and rows read, by the batches of the last minute."""
    dropped: dict[str, int] = {}
    fresh = [batch for batch in view.recent if batch.ended >= view.now - WINDOW]
    for batch in fresh:
        for operator in batch.operators:
            if operator.dropped_rows:
                dropped[operator.name] = dropped.get(operator.name, 0) + operator.dropped_rows
    return dropped, sum(batch.rows for batch in fresh)


def _lateness(view: View) -> float | None:
    """How far the oldest row of a batch that dropped some was behind that batch's watermark."""
    found = [
        batch.watermark - batch.event_time_min
        for batch in view.recent
        if batch.watermark is not None and batch.event_time_min is not None and _of(batch.operators)
    ]
    return max((each for each in found if each > 0), default=None)


RULE = Rule(slug="late-data", severity="warning", check=check, runbook=__doc__, linger=30.0, at_rest=True)
