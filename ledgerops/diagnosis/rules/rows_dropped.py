"""Rows dropped: stateful operators discard rows that are older than the watermark.

Meaning: rows arrived behind the watermark, and stateful operators discarded them without an error. This finding does
    not explain why the rows are behind: see the root cause named with it.
Impact: counts and sums are too low, and joined pairs are missing. This is permanent: the rows are in no output of this
    query.
Diagnosis: 1. Read the root cause named with this finding. `late-data` means that the rows are old, `watermark-jump`
    that the watermark is too far ahead, and `partition-time-spread` that one partition is read later than the others.
    2. `sum by (operator) (increase(ledgerops_rows_dropped_by_watermark_total{app="APP",query="QUERY"}[5m]))` shows how
    many rows were dropped. For aggregations it is a lower bound, because Spark counts groups after partial aggregation.
    3. Without a root cause, `ledgerops_watermark_lag_seconds{app="APP",query="QUERY"}` helps: if it fell below the
    allowed lateness, the watermark is too far ahead; if it did not, the rows are late.
Mitigation: remove the cause first: a longer lateness does not help if the watermark is too far ahead. To recover the
    dropped rows, run the query over the same input again with fresh state.
Evidence:
    rows_dropped_last_minute: sum of numRowsDroppedByWatermark of the operator over the batches that ended in the last
        60 s, or in three trigger intervals where these are longer; aggregations count groups of rows
    dropped_share: that number / sum of numInputRows of these batches; absent where groups are counted
    after_windows_share: where groups are counted, for one source, one watermark and a known length of window: with
        `in time` = eventTime.watermark of the batch before - that length, numInputRows x (in time - avg) / (in time -
        min), all where max is below it, over those of these batches that dropped rows / sum of numInputRows of all;
        a row that a filter before `withWatermark` removes is taken to be like the others
    rows_dropped_since_began: the same sum over the latest 200 batches of the run
"""

from collections.abc import Iterator

from ledgerops.diagnosis.facts.dropped import dropped
from ledgerops.diagnosis.rule import Rule
from ledgerops.metrics.first_steps import GENERAL, first_step
from ledgerops.model.finding import Component, Evidence, Finding, Remedy
from ledgerops.signals.query_view import QueryView


def check(view: QueryView) -> Iterator[Finding]:
    found = dropped(view)
    if found is None:
        return
    drops = [
        (batch, number)
        for batch in view.batches
        if (number := sum(each.dropped_rows for each in batch.operators if each.name == found.operator))
    ]
    ever = float(sum(number for _, number in drops))
    yield Finding(
        f"{found.words} were dropped by {found.operator} {found.lately}{found.note}",
        Component("operator", found.operator),
        (*found.evidence, Evidence("rows_dropped_since_began", ever, "rows", "0", found.at)),
        (
            first_step("rows-dropped", GENERAL, "its rows are lost for this query"),
            Remedy(
                "remove the cause, then process the affected time range again with fresh state",
                "the dropped rows are in no output; the input may still have them",
                safe=False,
            ),
        ),
        confidence=0.95,
        began=drops[0][0].started,
    )


RULE = Rule("rows-dropped", "warning", check, __doc__, linger=10.0, at_rest=True)
