"""Falling behind: the backlog of a query grows batch after batch.

Meaning: more rows arrive than the query processes. If the source limits its batches, rows pile up in the source. If it
    does not, each batch reads all available rows and takes longer than the one before. A file source does not report
    its backlog. It grows if each batch reads as many files as `maxFilesPerTrigger` allows, and the files get
    older. Of a table the age of the oldest unread commit grows.
Impact: results are late, by more every minute. Once the retention of the topic is reached, rows are lost.
Diagnosis: 1. Read the root cause named with this finding: it says what makes the query slow.
    `ledgerops diagnose http://INSTANCE --query QUERY` also lists the causes that were ruled out.
    2. Without a root cause, compare `sum(ledgerops_arrival_rows_per_second{app="APP",query="QUERY"})` with
    `ledgerops_capacity_rows_per_second{app="APP",query="QUERY"}`. If arrival is higher, the load is too high for these
    resources.
    3. Otherwise find the phase that takes longest with
    `sum by (phase) (rate(ledgerops_batch_phase_seconds_total{app="APP",query="QUERY"}[5m]))`. Mostly `add_batch` means
    tasks or the sink; other phases mean the driver, the source or the checkpoint.
Mitigation: check `ledgerops_retention_headroom_seconds{app="APP",query="QUERY"}` and raise the retention of the topic
    if less than an hour is left. Then remove the root cause. If the load is the only cause, add cores up to the number
    of source partitions, then add partitions. A higher limit on rows per trigger helps only if batches end well within
    the trigger interval.
Evidence:
    ledgerops_source_backlog_offsets: sum of latestOffset - endOffset over the partitions, in the newest batch.
    ledgerops_source_lag_seconds: now minus the time at which the endOffset of the newest batch was the head of its
        partition; the largest over the partitions. The time is interpolated between the latestOffset of earlier
        batches, each sampled at timestamp plus durationMs.latestOffset; while the query was idle, nothing came.
    ledgerops_source_file_age_seconds: `timestamp` of the newest batch whose files are known minus the modification time
        of the newest of these files.
    file_age_growth_seconds: that age minus the age in the first batch of the series.
    commit_wait_seconds: `at` of the first `tables` record after the newest batch that has one, minus `since` of the
        source in it; 0 where it has no unread version.
    commit_wait_growth_seconds: that age minus the age after the first batch of the series.
    batch_seconds: durationMs.triggerExecution of the newest batch; or how long the running batch has taken, if that is
        longer than its rows took to arrive.
    result_delay_seconds: now minus the time at which the batch before that one asked for its offsets (timestamp plus
        durationMs.latestOffset), when its oldest row arrived.
"""

from collections.abc import Iterator

from ledgerops.common.format import duration
from ledgerops.diagnosis.facts import growth
from ledgerops.diagnosis.facts.unread import MIN_LAG_SECONDS, aged
from ledgerops.diagnosis.rule import Rule, confidence
from ledgerops.metrics.first_steps import GENERAL, first_step
from ledgerops.metrics.pressure import BACKLOG, LAG
from ledgerops.model.finding import Component, Evidence, Finding
from ledgerops.signals.query_view import QueryView


def check(view: QueryView) -> Iterator[Finding]:
    grown = growth.growth(view)
    if grown is None or view.last is None:
        return
    at = view.now
    if grown.form == "backlog":
        summary = (
            f"the backlog grew over {grown.batches} batches from {grown.first:,.0f} to {grown.last:,.0f} offsets; "
            f"the oldest unread row has waited {duration(grown.lag)}"
        )
        evidence = (
            Evidence(BACKLOG.name, grown.last, "offsets", f"not above {grown.first:,.0f}", at),
            Evidence(LAG.name, grown.lag, "seconds", f"<= {MIN_LAG_SECONDS:g}", at),
        )
    elif grown.form == "files":
        summary = (
            f"files wait for longer and longer: over {grown.batches} batches the newest file that a batch read was "
            f"first {duration(grown.first)} old, then {duration(grown.last)}"
        )
        evidence = aged(grown.form, grown.first, grown.last, at)
    elif grown.form == "commits":
        summary = (
            f"commits of the table wait for longer and longer: the oldest unread one was {grown.first:.0f} s old "
            f"{grown.batches} batches ago and is {grown.last:.0f} s old now"
        )
        evidence = aged(grown.form, grown.first, grown.last, at)
    else:
        which = "the last batch" if grown.batches == 1 else f"each of the last {grown.batches} batches"
        summary = (
            f"{which} took longer than its rows took to arrive, up to {duration(grown.last)}; "
            f"results are {duration(grown.lag)} late"
        )
        evidence = (
            Evidence("batch_seconds", grown.last, "seconds", "no longer than its rows took to arrive", at),
            Evidence("result_delay_seconds", grown.lag, "seconds", f"<= {growth.MIN_BATCH_LAG_SECONDS:g}", at),
        )
    yield Finding(
        summary,
        Component("query", view.query),
        evidence,
        (first_step("falling-behind", GENERAL, "a backlog shrinks only when more rows are processed than arrive"),),
        confidence=confidence(grown.lag, MIN_LAG_SECONDS),
        began=grown.since,
    )


RULE = Rule("falling-behind", "critical", check, __doc__, ("freshness-breach",))
