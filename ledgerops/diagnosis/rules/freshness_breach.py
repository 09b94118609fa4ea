"""Freshness breach: results are older than the objective while rows keep arriving.

Meaning: the time from a row's arrival to its result exceeds the freshness objective. Three ages are checked: that of
    the oldest row waiting in the source or in the running batch, that of the rows observed by `ledgerops.instrument`,
    and that of the watermark, which delays windows and joins. A replay of old rows, a query without input, and a query
    that is catching up are not reported. A query that reads committed rows only (`isolation.level`) finds none after
    the beginning of an open transaction: Spark calls it idle while the topic has rows. The alert LedgerFreshnessPage
    fires when results were too old for so much of the last minutes and hours that the error budget of the period would
    be gone within days; a query that should be running and is not counts as bad all the time.
Impact: readers see outdated results: balances, limits and reports are behind the transactions.
Diagnosis: 1. Read the root cause named with this finding: this finding is only the symptom.
    2. `max(ledgerops_source_lag_seconds{app="APP",query="QUERY"})` is the age of the oldest unread row. If it is high,
    the query does not keep up: see `falling-behind`.
    3. If the lag is low, check `ledgerops_watermark_lag_seconds{app="APP",query="QUERY"}`. If it is high, an input
    holds the watermark back: it is silent (see `watermark-stalled`), or its rows are old, as those of an archive that
    the query reads beside live rows. If it is low too, the rows arrive late: see
    `ledgerops_event_latency_seconds{app="APP",query="QUERY"}`, a histogram of their age.
    4. `query:freshness:seconds{app="APP",query="QUERY"}` is the age that the alert judges, and
    `query:freshness_budget:ratio{app="APP",query="QUERY"}` what is left of the budget.
    5. Spark calls the query idle, and the lag is high: `kafka-transactions.sh --bootstrap-server SERVERS find-hanging
    --broker-id ID` for each broker. Without an open transaction, compare `kafka_servers` with the servers of the query.
Mitigation: if the backlog shrinks, wait: `ledgerops_backlog_drain_seconds{app="APP",query="QUERY"}` estimates how
    long. Otherwise remove the named root cause. Read an archive to its end in a query of its own: beside it, windows
    of live rows close only when all of it is read. A transaction that its producer has left open ends with
    `kafka-transactions.sh --bootstrap-server SERVERS abort`: its rows are discarded. If the query is down, start it
    with its checkpoint.
Evidence:
    ledgerops_source_lag_seconds: now minus the time at which the endOffset of the newest batch was the head of its
        partition; the largest over the partitions. Of an idle query: over those of which the newest record `offsets`
        has more. The time is interpolated between the latestOffset of earlier batches, each sampled at timestamp plus
        durationMs.latestOffset; while the query was idle, nothing came.
    result_delay_seconds: age of the oldest row in the batch. While a batch runs: now minus the time at which the
        previous batch asked for its offsets (timestamp plus durationMs.latestOffset); if the batch began more than an
        interval after that batch ended, now minus its start plus the interval. Otherwise the same at the end of a batch
        (timestamp plus durationMs.triggerExecution) instead of now, the smaller of the latest two.
    event_latency_seconds: median age of the rows, from the buckets latency_le_N that `instrument` observes, as PromQL's
        histogram_quantile(0.5) computes it (linear within a bucket; N is the index of the bound in
        ledgerops_event_latency_seconds); median over the latest 3 batches.
    watermark_lag_seconds: the end of the newest batch minus eventTime.watermark, minus the allowed lateness.
    freshness_objective_seconds: the setting plus two trigger intervals, because no query can be fresher. If the trigger
        is unknown, plus twice the longest pause between two batches.
"""

from collections.abc import Iterator

from ledgerops.common.format import counted, duration
from ledgerops.diagnosis.facts.context import source_names
from ledgerops.diagnosis.facts.result_age import catches_up, too_old
from ledgerops.diagnosis.rule import Rule, confidence
from ledgerops.metrics.first_steps import GENERAL, first_step
from ledgerops.metrics.pressure import LAG
from ledgerops.model.finding import Component, Evidence, Finding
from ledgerops.signals.query_view import QueryView


def check(view: QueryView) -> Iterator[Finding]:
    if view.last is None or view.plan.ends_itself:
        return
    # where the trigger is not known, the longest pause seen replaces it
    interval = view.trigger.interval if view.trigger.known else view.trigger.longest_pause
    limit = view.freshness + 2 * (interval or 0.0)
    if view.run.is_idle:
        if view.trigger.known or interval is not None:  # else nobody knows when it looks again
            yield from _hidden(view, limit)
        return
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


def _hidden(view: QueryView, limit: float) -> Iterator[Finding]:
    """The broker has rows that Spark does not find: a query that reads committed rows only sees nothing of what comes
    after the beginning of an open transaction."""
    lag, left = view.lag.seconds, view.lag.unread_offsets
    waits = view.history.plan is None or view.plan.waits_for_more
    if view.lag.heads is None or lag is None or lag <= limit or waits or view.run.running_seconds is not None:
        return
    yield Finding(
        f"Spark finds no new rows, but {counted(left or 0, 'offset')} of the source are unread, the oldest for "
        f"{duration(lag)}: an open transaction hides them from a query that reads committed rows only",
        Component("source", source_names(view)),
        (
            Evidence(LAG.name, lag, "seconds", f"<= {limit:g}", view.now),
            Evidence("freshness_objective_seconds", limit, "seconds", "the objective", view.now),
        ),
        (first_step("freshness-breach", "transaction", "what comes after its first row is hidden until it ends"),),
        confidence=confidence(lag, limit),
    )


RULE = Rule("freshness-breach", "critical", check, __doc__, at_rest=True)
