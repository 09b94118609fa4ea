"""Freshness breach: results are older than the objective while rows keep arriving.

Meaning: results are older than the freshness objective: by the oldest row that waits in the source or the running
    batch, by the rows that `ledgerops.instrument` observes, or by the watermark, which delays windows and joins. A
    replay of old rows, a query without input and one that catches up are not reported. The alert LedgerFreshnessPage
    fires when the error budget of the period would be gone within days; a query that should be running and is not
    counts as bad all the time.
Impact: readers see outdated results: balances, limits and reports are behind the transactions.
Diagnosis: 1. Read the root cause named with this finding.
    2. Without one: if `max(ledgerops_source_lag_seconds{app="APP",query="QUERY"})`, the age of the oldest unread row,
    is high, see `falling-behind`.
    3. If `ledgerops_watermark_lag_seconds{app="APP",query="QUERY"}` is high, an input holds the watermark back: it is
    silent (see `watermark-stalled`), or its rows are old. If neither is, the rows arrive late: see
    `ledgerops_event_latency_seconds{app="APP",query="QUERY"}`, a histogram of their age.
    4. `query:freshness:seconds{app="APP",query="QUERY"}` is the age that the alert judges,
    `query:freshness_budget:ratio{app="APP",query="QUERY"}` what is left of the budget.
Mitigation: if the backlog shrinks, wait: `ledgerops_backlog_drain_seconds{app="APP",query="QUERY"}` estimates how long.
    Otherwise remove the named root cause. Read an archive to its end in a query of its own: beside it, windows of live
    rows close only when all of it is read. If the query is down, start it with its checkpoint.
Evidence:
    ledgerops_source_lag_seconds: as for `falling-behind`
    result_delay_seconds: age of the oldest row of the running batch, or at the end of the latest two the smaller one
    event_latency_seconds: median age of rows by the buckets latency_le_N of `instrument`; median of 3 batches
    watermark_lag_seconds: the end of the newest batch - eventTime.watermark - the allowed lateness
    freshness_objective_seconds: the setting + two trigger intervals, or two of the longest pauses between batches
"""

from collections.abc import Iterator

from ledgerops.common.format import duration
from ledgerops.diagnosis.facts.result_age import catches_up, too_old
from ledgerops.diagnosis.rule import Rule, confidence
from ledgerops.metrics.first_steps import GENERAL, first_step
from ledgerops.model.finding import Component, Evidence, Finding
from ledgerops.signals.query_view import QueryView


def check(view: QueryView) -> Iterator[Finding]:
    last = view.last
    if last is None or view.history.idle_since is not None or view.plan.ends_itself:
        return
    # where the trigger is not known, the longest pause seen replaces it
    interval = view.trigger.interval if view.trigger.known else view.trigger.longest_pause
    limit = view.freshness + 2 * (interval or 0.0)
    if view.now - view.batches[0].started < limit:
        return
    ages = too_old(view, limit)
    worst = max(ages, key=lambda age: age.seconds, default=None)
    if worst is None or catches_up(view, limit):
        return
    at = view.now
    evidence = [Evidence(age.what, age.seconds, "seconds", f"<= {limit:g}", at) for age in ages]
    evidence.append(Evidence("freshness_objective_seconds", limit, "seconds", "the objective", at))
    pause = "intervals" if view.trigger.known else "pauses"
    more = f" and two {pause} of {round(interval, 1):g} s" if interval else ""
    yield Finding(
        f"{worst.words} {duration(worst.seconds)}; the limit is {view.freshness:g} s{more}{worst.why}",
        Component("query", view.query, worst.what),
        tuple(evidence),
        (first_step("freshness-breach", GENERAL, "one of them is what makes results old"),),
        confidence=confidence(worst.seconds, limit),
    )


RULE = Rule("freshness-breach", "critical", check, __doc__)
