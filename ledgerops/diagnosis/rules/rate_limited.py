"""Rate limited: the rate limit of the source slows a query that has spare capacity.

Meaning: each batch reads as much as `maxOffsetsPerTrigger` (or a similar option) allows, leaves rows behind,
    and ends well before the next trigger. The query could process more than the limit allows.
Impact: the backlog stays or grows although neither the cores nor the sink is the bottleneck.
Diagnosis: 1. `ledgerops_busy_ratio{app="APP",query="QUERY"}` is well below 1 while
    `sum(ledgerops_source_backlog_offsets{app="APP",query="QUERY"})` does not fall. If the ratio is near 1, the limit is
    not the bottleneck: see `falling-behind`.
    2. `sum(ledgerops_arrival_rows_per_second{app="APP",query="QUERY"}) *
    max(ledgerops_trigger_interval_seconds{app="APP",query="QUERY"})` rows arrive an interval. The limit must be higher.
    A file source is limited when `ledgerops_source_batch_files{app="APP",query="QUERY"}` stays at
    `maxFilesPerTrigger` while `ledgerops_source_file_age_seconds{app="APP",query="QUERY",kind="newest"}` grows.
    3. Find out why the limit was set. If it protects the sink or another system, ask its owner before you raise it.
Mitigation: if the backlog dates from a pause and still shrinks, wait. Otherwise raise the limit so that a batch takes
    most of the interval, and restart the query with the same checkpoint. Do not remove the limit: it bounds the first
    batch after a pause.
Evidence:
    batch_offsets: sum of endOffset - startOffset over the partitions of the source in the newest batch
    batch_seconds_median: median of durationMs.triggerExecution / 1000 over the newest 5 batches of the run, without
        those of its first 10 s
    needed_offsets: arrival x F / (0.7 - A x R), at least arrival x the interval / 0.7. arrival = offsets a second that
        come into the source, A = into all sources. F = seconds of a batch that its rows do not make longer, R = the
        other seconds divided by the offsets of a batch, by the parts of the profile (`docs/verdict.md`)
    stretch_by_<part>: where others have the cores: how many times as long the work takes, as for `cpu-saturated`
    stretch_of_tasks: the same for tasks that compute
    backlog_offsets: sum of latestOffset - endOffset over the partitions of the newest batch
    ledgerops_source_lag_seconds: now minus the time at which the endOffset of the newest batch was the head of its
        partition, interpolated between the heads in batches and `offsets` records; the largest over the partitions
    batch_files: the number of files of the newest batch whose files are known, from the `files` records
    ledgerops_source_file_age_seconds: `timestamp` of that batch minus the modification time of its newest file
    file_age_growth_seconds: that age minus the age in the first batch of the series
    commit_wait_seconds: as for `falling-behind`
    commit_wait_growth_seconds: as for `falling-behind`
"""

from collections.abc import Iterator
from math import ceil
from statistics import median

from ledgerops.common.format import counted, duration
from ledgerops.diagnosis.facts import growth
from ledgerops.diagnosis.facts.held_back import held_back
from ledgerops.diagnosis.facts.unread import MIN_LAG_SECONDS, aged, unread
from ledgerops.diagnosis.rule import Rule, confidence
from ledgerops.metrics.first_steps import GENERAL, first_step
from ledgerops.metrics.pressure import LAG
from ledgerops.model.finding import Component, Evidence, Finding, Remedy, Setting
from ledgerops.signals.query_view import QueryView
from ledgerops.signals.rate_cap import CAP_BATCHES, ROOM_SHARE, UNKNOWN_OPTION, cap_of, is_full, offsets_read

MORE_ROWS = "more rows in a batch hardly make it longer: it would keep up, unless the sink needs the cap"


def check(view: QueryView) -> Iterator[Finding]:
    yield from _unread(view)
    held = held_back(view)
    if held is None or view.last is None:
        return
    at, interval, better = view.last.ended, view.trigger.interval, _rounded(held.needed, held.cap)
    of = f" of {interval:g} s" if interval else ""
    named = f"{held.option} (such as maxOffsetsPerTrigger)" if held.option == UNKNOWN_OPTION else held.option
    yield Finding(
        f"each of the last {CAP_BATCHES} batches read the {counted(held.cap, 'offset')} that {held.option} allows; "
        f"at the median they took {duration(held.seconds)}{of}, and {held.left:,} are left behind",
        Component("source", held.source, held.option),
        (
            Evidence("batch_offsets", float(held.read), "offsets", "below the cap", at),
            Evidence("batch_seconds_median", held.seconds, "seconds", "most of it for rows", at),
            Evidence("backlog_offsets", float(held.left), "offsets", "0", at),
            Evidence("needed_offsets", held.needed, "offsets", f"<= {held.cap:,}", at),
            Evidence(LAG.name, held.lag, "seconds", f"<= {MIN_LAG_SECONDS:g}", view.now),
            *held.profile.stretches,
        ),
        (_raise(held.option, better, MORE_ROWS, named),),
        confidence=confidence(held.needed, held.cap),
        began=view.baseline.steady[-CAP_BATCHES].started,
        share=held.share,
        batches=held.profile.batches,
        usual_batches=held.profile.usual_batches,
    )


def _raise(option: str, better: int, why: str, named: str = "") -> Remedy:
    limit = f" to about {better:,}"
    return first_step(
        "rate-limited", GENERAL, why, option=named or option, limit=limit, settings=(Setting(option, better),)
    )


def _rounded(needed: float, cap: int) -> int:
    """Twice the cap at least, to two digits: the backlog must go, too."""
    better = ceil(max(needed, 2.0 * cap))
    unit: int = 10 ** max(0, len(str(better)) - 2)
    return ceil(better / unit) * unit


def _unread(view: QueryView) -> Iterator[Finding]:
    """Files or commits of a table wait for longer and longer although batches have room for more of them."""
    grown, wait = growth.growth(view), unread(view)
    interval, latest = view.trigger.interval, view.baseline.steady[-CAP_BATCHES:]
    if grown is None or wait is None or not wait.option or not interval or len(latest) < CAP_BATCHES:
        return
    seconds, at = median(batch.duration for batch in latest), latest[-1].ended
    if grown.form != wait.form or seconds > ROOM_SHARE * interval:
        return
    files, option, cap = wait.form == "files", wait.option, wait.cap
    # a reader of a table moves on by this share of the time that passes; with a cap as many times higher it would just
    # keep up, and the backlog must go, too
    pace = 1.0 if files else 1 - min(0.9, wait.share)
    better = max(2 * cap, int(cap * ROOM_SHARE * interval / seconds), ceil(cap / pace / ROOM_SHARE))
    read = f"each of the last {wait.batches} batches read the {counted(cap, 'file')} that {option} allows; they"
    who = "files now wait" if files else "the oldest unread commit now waits"
    yield Finding(
        f"{read if files else f'{option} is {cap:,}: the last {CAP_BATCHES} batches'} "
        f"took {duration(seconds)} of {interval:g} s at the median; {who} {duration(wait.last)}, "
        f"{duration(wait.last - wait.first)} longer than before",
        Component("source", wait.source, option),
        (
            *([Evidence("batch_files", float(cap), "files", "below the cap", at)] if files else []),
            Evidence("batch_seconds_median", seconds, "seconds", f">= {ROOM_SHARE * interval:.1f}", at),
            *aged(wait.form, wait.first, wait.last, at),
        ),
        (_raise(option, better, "batches end well within the interval: there is time for more files"),),
        confidence=confidence(wait.last, MIN_LAG_SECONDS),
        began=wait.since,
        share=wait.share,
    )


def ruled_out(view: QueryView) -> str | None:
    cap, latest = cap_of(view), view.baseline.steady[-CAP_BATCHES:]
    if cap is None or not latest or held_back(view) is not None:
        return None
    if not any(is_full(source, cap[1]) for batch in latest for source in batch.sources):
        return f"batches read at most {max(offsets_read(view)):,} of the {cap[1]:,} offsets that {cap[0]} allows"
    return None


RULE = Rule("rate-limited", "warning", check, __doc__, ("input-overload", "falling-behind"), ruled_out)
