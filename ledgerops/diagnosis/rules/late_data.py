"""Late data: rows arrive later than the watermark allows, and are dropped.

Meaning: the watermark follows the newest event time, minus the delay given to `withWatermark`. Some rows have an event
    time before the watermark, and stateful operators discard them without an error.
Impact: counts and sums are too low, and joined pairs are missing. The dropped rows are in no output.
Diagnosis: 1. `sum by (operator) (increase(ledgerops_rows_dropped_by_watermark_total{app="APP",query="QUERY"}[5m]))`
    shows how many rows were dropped. For aggregations it is a lower bound, because Spark counts groups of rows.
    2. `ledgerops_watermark_lag_seconds{app="APP",query="QUERY"}` shows why. If it fell below the allowed lateness, a
    few rows have an event time in the future: see `watermark-jump`. If it did not change, many rows are late.
    3. `max by (topic, partition) (ledgerops_source_lag_seconds{app="APP",query="QUERY"})` shows where. If one partition
    is far behind, see `partition-time-spread`; if none is, find the producer that sends late.
Mitigation: repair the producer that sends late. If rows may legitimately be that late, raise the delay of
    `withWatermark`: state grows in proportion, and the change applies from the next start of the query. To recover the
    dropped rows, replay them.
Evidence:
    rows_dropped_last_minute: sum of numRowsDroppedByWatermark of the operator over the batches that ended in the last
        60 s, or in three trigger intervals where these are longer; aggregations count groups of rows
    dropped_share: that number / sum of numInputRows of these batches; absent where groups are counted
    after_windows_share: where groups are counted, for one source, one watermark and a known length of window: with
        `in time` = eventTime.watermark of the batch before - that length, numInputRows x (in time - avg) / (in time -
        min), all where max is below it, over those of these batches that dropped rows / sum of numInputRows of all;
        a row that a filter before `withWatermark` removes is taken to be like the others
    oldest_row_behind_watermark_seconds: largest eventTime.watermark - eventTime.min of those that dropped rows
    oldest_event_time_seconds: the least eventTime.min of these, where it is probably no time
    allowed_lateness_seconds: the largest delay of `withWatermark` in the plan
"""

from collections.abc import Iterator, Sequence
from math import ceil

from ledgerops.common.format import duration
from ledgerops.diagnosis.facts.dropped import dropped
from ledgerops.diagnosis.facts.misread_time import Misread, misread
from ledgerops.diagnosis.facts.watermark_ahead import jump
from ledgerops.diagnosis.limits import NOISE_SHARE
from ledgerops.diagnosis.rule import Rule
from ledgerops.metrics.first_steps import GENERAL, first_step
from ledgerops.model.finding import DELAY_SECONDS, Component, Evidence, Finding, Remedy, Setting
from ledgerops.model.records import Progress
from ledgerops.signals.query_view import QueryView


def check(view: QueryView) -> Iterator[Finding]:
    found = dropped(view)
    if found is None or jump(view) is not None:
        return
    delay = view.plan.lateness
    oldest = [batch.event_time_min for batch in found.batches if batch.event_time_min is not None]
    wrong = misread(min(oldest), found.batches[-1].ended) if oldest else None
    lateness = _lateness(found.batches)
    evidence = list(found.evidence)
    behind = ""
    if wrong is not None:
        evidence.append(Evidence("oldest_event_time_seconds", wrong.at, "seconds", "about now", found.at))
        behind = f"; the oldest event time is {wrong.question}"
    elif lateness is not None:
        evidence.append(Evidence("oldest_row_behind_watermark_seconds", lateness, "seconds", "<= 0", found.at))
        behind = f"; the oldest was {duration(lateness)} behind the watermark"
    if delay is not None:
        evidence.append(Evidence("allowed_lateness_seconds", delay, "seconds", "the delay of withWatermark", found.at))
    allowed = f" (allowed lateness {delay:g} s)" if delay is not None else ""
    yield Finding(
        f"{found.words} were dropped as late by {found.operator} {found.lately}{allowed}{found.note}{behind}",
        Component("operator", found.operator),
        tuple(evidence),
        _remedies(delay, lateness, wrong),
        confidence=0.9 if wrong is not None or (found.share or 0.0) >= NOISE_SHARE else 0.75,
        began=found.since,
        share=found.known_share,
    )


def _lateness(batches: Sequence[Progress]) -> float | None:
    """Seconds by which the oldest row of a batch with dropped rows was behind that batch's watermark; None where none
    is known to be."""
    behind = (
        batch.watermark - batch.event_time_min
        for batch in batches
        if batch.watermark is not None and batch.event_time_min is not None
    )
    return max((seconds for seconds in behind if seconds > 0), default=None)


def _remedies(delay: float | None, lateness: float | None, wrong: Misread | None) -> tuple[Remedy, ...]:
    if wrong is not None:
        why = "an event time of 1970 is a wrong value and no late row; more lateness does not help"
        then = Remedy("find the producer of these rows", "the dropped rows are lost for this query")
        return first_step("late-data", "misread", why), then
    seconds = ceil(delay + lateness) if delay is not None and lateness is not None else None
    enough = f", at least {seconds} s" if seconds is not None else ""
    return (
        first_step("late-data", GENERAL, "the dropped rows are lost for this query"),
        Remedy(
            f"allow more lateness with withWatermark{enough}",
            "only if rows may legitimately be that late; state grows in proportion",
            safe=False,
            settings=(Setting(DELAY_SECONDS, seconds),),
        ),
    )


def ruled_out(view: QueryView) -> str | None:
    """Rows that arrive on time behind a watermark that is too far ahead are not late."""
    found = jump(view)
    return found.because if found is not None else None


RULE = Rule(
    "late-data", "warning", check, __doc__, ("rows-dropped", "freshness-breach"), ruled_out, linger=10.0, at_rest=True
)
