"""Catching up: the query processes a backlog from before its start, and the backlog shrinks.

Meaning: the run started with a backlog, after a restart or from the earliest offsets, and the backlog shrinks. The
    query itself is healthy.
Impact: results are late until the backlog is gone. The finding estimates when that is.
Diagnosis: 1. `sum(ledgerops_source_backlog_offsets{app="APP",query="QUERY"})` must keep falling. If it rises again, the
    query can no longer keep up: see `falling-behind`.
    2. `ledgerops_backlog_drain_seconds{app="APP",query="QUERY"}` estimates the remaining time from the capacity of the
    query. If that is too long, the query needs more cores until the backlog is gone.
    3. If `ledgerops_query_restarts_total{app="APP",query="QUERY"}` rose, find out why the query was down: see
    `query-failed`.
Mitigation: wait, but check that `ledgerops_retention_headroom_seconds{app="APP",query="QUERY"}`, the time until the
    topic deletes unread rows, is longer than the remaining time. If it is not, raise the retention of the topic. If the
    wait is too long, give the query more cores, at most as many as the source has partitions.
Evidence:
    ledgerops_source_backlog_offsets: sum of latestOffset - endOffset over the partitions, in the newest batch.
    backlog_falls_by: decrease of that sum per second, from the batch of the newest 13 (of the run) where it is highest
        to the newest. Batches without a latestOffset, repeated after a crash, are skipped.
    ledgerops_backlog_drain_seconds: the first divided by the second.
    away_seconds: time between the end of the previous run (`terminated`) and the start of this run (`started`); absent
        for a first run.
"""

from collections.abc import Iterator

from ledgerops.common.format import duration
from ledgerops.diagnosis.facts import growth
from ledgerops.diagnosis.limits import MIN_CATCH_UP_SECONDS
from ledgerops.diagnosis.rule import CLEAR, Rule
from ledgerops.metrics.first_steps import GENERAL, first_step
from ledgerops.metrics.pressure import BACKLOG
from ledgerops.metrics.verdict import DRAIN
from ledgerops.model.finding import Component, Evidence, Finding
from ledgerops.signals.lag import lefts
from ledgerops.signals.query_view import QueryView

# times interval plus batch without another batch: by then the query no longer processes anything
MAX_SILENT_INTERVALS = 3


def check(view: QueryView) -> Iterator[Finding]:
    if not view.lag.shrinks or not view.lag.falls_by or not (left := view.lag.backlog):
        return
    last, interval = view.batches[-1], view.interval
    if view.history.ended or view.now - last.ended > MAX_SILENT_INTERVALS * (interval + last.duration):
        return
    sizes = [each for _, each in lefts(view.batches)]
    if growth.growth(view) is not None or not growth.piled_up_before(sizes):
        return
    lag = view.lag.seconds or 0.0
    if lag <= max(MIN_CATCH_UP_SECONDS, 2 * interval):
        return
    pace, seconds = view.lag.falls_by, left / view.lag.falls_by
    evidence = [
        Evidence(BACKLOG.name, float(left), "offsets", "falling", last.ended),
        Evidence("backlog_falls_by", pace, "offsets", "the pace", last.ended),
        Evidence(DRAIN.name, seconds, "seconds", "falling", last.ended),
    ]
    why = ""
    ends, began = view.history.ends, view.history.started_at
    if ends and began is not None and ends[-1].run_id != view.history.run_id:  # not a first run
        gone, end = max(0.0, began - ends[-1].at), ends[-1]
        evidence.append(Evidence("away_seconds", gone, "seconds", "0", last.ended))
        failed = f" after a failure ({end.error_class or 'no error class'})" if end.exception is not None else ""
        why = f"; the query was down for {duration(gone)}{failed}"
    yield Finding(
        f"catching up: {left:,} of {max(sizes):,} offsets are left, {pace:,.0f} fewer per second; "
        f"backlog clears in about {duration(seconds)}{why}",
        Component("query", view.query),
        tuple(evidence),
        (first_step("catching-up", GENERAL, "it dates from before the start of the query, and shrinks"),),
        confidence=CLEAR,
        began=view.batches[0].started,
    )


RULE = Rule("catching-up", "info", check, __doc__, ("trigger-overrun", "freshness-breach"), linger=0.0)
