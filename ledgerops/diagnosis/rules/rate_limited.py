"""Rate limited: the rate limit of the source slows a query that has spare capacity.

Meaning: each batch reads exactly as much as `maxOffsetsPerTrigger` (or a similar option) allows, leaves rows behind,
    and ends well before the next trigger. The query could process more than the limit allows.
Impact: the backlog stays or grows although neither the cores nor the sink is the bottleneck.
Diagnosis: 1. `ledgerops_busy_ratio{query="QUERY"}` is well below 1 while
    `sum(ledgerops_source_backlog_offsets{query="QUERY"})` does not fall. If the ratio is near 1, the limit is not the
    bottleneck: see `falling-behind`.
    2. `sum(ledgerops_arrival_rows_per_second{query="QUERY"}) * max(ledgerops_trigger_interval_seconds{query="QUERY"})`
    is the number of rows that arrive in an interval. The limit must be higher than that.
    A file source has no such figures. Its limit is the bottleneck when `ledgerops_source_batch_files{query="QUERY"}`
    stays at `maxFilesPerTrigger` while `ledgerops_source_file_age_seconds{query="QUERY",kind="newest"}` grows.
    3. Find out why the limit was set. If it protects the sink or another system, ask its owner before you raise it.
Mitigation: if the backlog dates from a pause and still shrinks, wait. Otherwise raise the limit so that a batch takes
    most of the interval, and restart the query with the same checkpoint. Do not remove the limit: it bounds the first
    batch after a pause.
Evidence:
    batch_offsets: sum of endOffset - startOffset over all sources and partitions of the newest batch
    batch_seconds_median: median of durationMs.triggerExecution / 1000 over the newest 5 batches of the run, without
        those of its first 10 s
    backlog_offsets: sum of latestOffset - endOffset over the partitions of the newest batch
    ledgerops_source_lag_seconds: now minus the time at which the endOffset of the newest batch was the head of its
        partition, interpolated between the heads in batches and `offsets` records; the largest over the partitions
    batch_files: the number of files of the newest batch whose files are known, from the `files` records
    ledgerops_source_file_age_seconds: `timestamp` of that batch minus the modification time of its newest file
    file_age_growth_seconds: that age minus the age in the first batch of the series
"""

from collections.abc import Iterator
from statistics import median
from typing import NamedTuple

from ledgerops.common.format import counted
from ledgerops.diagnosis import overload
from ledgerops.diagnosis.file_wait import file_wait
from ledgerops.diagnosis.rule import Rule
from ledgerops.metrics.pressure import FILE_AGE, LAG
from ledgerops.model.finding import Component, Evidence, Finding, Remedy
from ledgerops.model.history import backlog
from ledgerops.signals.memo import once
from ledgerops.signals.partitions import read_by_partition
from ledgerops.signals.query_view import QueryView

CAPS = ("maxoffsetspertrigger", "maxrowspertrigger")  # counted in offsets; a cap in bytes or files is not
MIN_BATCHES = 5
MIN_ONE_SIZE_SHARE = 0.98  # smallest batch over the largest: Spark divides a cap among the partitions, and rounds
UNKNOWN_OPTION = "the limit of the source"
MIN_CAP_SHARE = 0.9  # of the cap: Spark divides it among the partitions, and rounds
MAX_ROOMY_SHARE = 0.7  # of the interval: a shorter batch has room for more rows, whatever its time is spent on
MAX_FULL_SHARE = 0.9  # of the interval: a longer batch has no room
MAX_SMALLER_SHARE = 0.8  # of the rows; smaller batches show what more rows cost
LAG_SECONDS = 10.0  # as for falling behind
SOON_SECONDS = 600.0  # a backlog that clears sooner needs no restart with another cap


class Held(NamedTuple):
    """A query that its rate limit holds back."""

    option: str
    cap: int  # offsets a batch
    seconds: float  # of a batch, the median
    left: int  # offsets
    lag: float  # seconds
    share: float  # of what arrives that the cap does not let in


def check(view: QueryView) -> Iterator[Finding]:
    yield from _files(view)
    held = _held(view)
    if held is None or view.last is None:
        return
    interval = view.trigger.interval or 0.0
    better = round(held.cap * MAX_ROOMY_SHARE * interval / held.seconds, -2) if held.seconds > 0 else 2 * held.cap
    at = view.last.ended
    yield Finding(
        f"each of the last {MIN_BATCHES} batches read the {counted(held.cap, 'offset')} that {held.option} allows, "
        f"took {held.seconds:.1f} s of {interval:g} s, and left {held.left:,} behind",
        Component("source", ",".join(source.name for source in view.last.sources), held.option),
        (
            Evidence(
                "batch_offsets", float(sum(read_by_partition(view.last).values())), "offsets", "below the cap", at
            ),
            Evidence("batch_seconds_median", held.seconds, "seconds", f">= {MAX_ROOMY_SHARE * interval:.1f}", at),
            Evidence("backlog_offsets", float(held.left), "offsets", "0", at),
            Evidence(LAG.name, held.lag, "seconds", f"<= {LAG_SECONDS:g}", view.now),
        ),
        (
            Remedy(
                f"raise {_named(held.option)} to about {max(better, 2 * held.cap):,.0f} and start the query again",
                "batches end well within the interval: there is time for more rows",
                safe=False,
            ),
        ),
        confidence=0.9,
        began=view.baseline.steady[-MIN_BATCHES].started,
        share=held.share,
    )


def _files(view: QueryView) -> Iterator[Finding]:
    """Files wait for longer and longer although batches end well within the interval."""
    grown, wait = overload.growth(view), file_wait(view)
    interval, latest = view.trigger.interval, view.baseline.steady[-MIN_BATCHES:]
    if grown is None or grown.form != "files" or wait is None or not interval or len(latest) < MIN_BATCHES:
        return
    seconds, at = median(batch.duration for batch in latest), latest[-1].ended
    if seconds > MAX_ROOMY_SHARE * interval:
        return
    better = max(2 * wait.cap, int(wait.cap * MAX_ROOMY_SHARE * interval / seconds))
    files = counted(wait.cap, "file")
    yield Finding(
        f"each of the last {wait.batches} batches read the {files} that {wait.option} allows and took {seconds:.1f} s "
        f"of {interval:g} s; files now wait {wait.last:.0f} s, {wait.last - wait.first:.0f} s longer than before",
        Component("source", wait.source, wait.option),
        (
            Evidence("batch_files", float(wait.cap), "files", "below the cap", at),
            Evidence("batch_seconds_median", seconds, "seconds", f">= {MAX_ROOMY_SHARE * interval:.1f}", at),
            Evidence(FILE_AGE.name, wait.last, "seconds", f"<= {LAG_SECONDS:g}", at),
            Evidence("file_age_growth_seconds", wait.last - wait.first, "seconds", "0", at),
        ),
        (
            Remedy(
                f"raise {wait.option} to about {better:,} and start the query again",
                "batches end well within the interval: there is time for more files",
                safe=False,
            ),
        ),
        confidence=0.9,
        began=wait.since,
        share=wait.share,
    )


@once
def _held(view: QueryView) -> Held | None:
    cap = cap_of(view)
    interval, latest = view.trigger.interval, view.baseline.steady[-MIN_BATCHES:]
    if cap is None or not interval or len(latest) < MIN_BATCHES:
        return None
    option, limit = cap
    lefts = [left for batch in latest if (left := backlog(batch)) is not None]
    seconds = median(batch.duration for batch in latest)
    if len(lefts) < MIN_BATCHES or sum(batch.duration > interval for batch in latest) > 1:
        return None
    if any(sum(read_by_partition(batch).values()) < MIN_CAP_SHARE * limit for batch in latest):
        return None
    span = latest[-1].started - latest[0].started
    shrinks = (lefts[0] - lefts[-1]) / span if span > 0 else 0.0
    lag = view.lag.seconds or 0.0
    if lag < max(LAG_SECONDS, 2 * interval) or (shrinks > 0 and lefts[-1] / shrinks < SOON_SECONDS):
        return None
    load = overload.load(view, MIN_BATCHES)
    if seconds > MAX_ROOMY_SHARE * interval and not _cheap(view, seconds, interval, load):
        return None
    share = max(0.0, 1 - load.processed / load.arrival) if load is not None and load.arrival > 0 else 0.0
    return Held(option, limit, seconds, lefts[-1], lag, share)


def _named(option: str) -> str:
    """The option, or those that it may be where neither plan nor log says which."""
    return f"{option} (such as maxOffsetsPerTrigger)" if option == UNKNOWN_OPTION else option


def _cheap(view: QueryView, seconds: float, interval: float, load: overload.Load | None) -> bool:
    """Whether as many rows as arrive would fit into the interval: most of a batch's time is not spent on its rows.

    Known from the smaller batches of the run: what the larger ones take longer is what rows cost.
    """
    rows = median(batch.rows for batch in view.baseline.steady[-MIN_BATCHES:])
    smaller = [batch for batch in view.baseline.steady[:-MIN_BATCHES] if 0 < batch.rows <= MAX_SMALLER_SHARE * rows]
    if seconds > MAX_FULL_SHARE * interval or load is None or len(smaller) < MIN_BATCHES:
        return False
    fewer, before = median(batch.rows for batch in smaller), median(batch.duration for batch in smaller)
    each = max(0.0, seconds - before) / (rows - fewer)
    return seconds + each * max(0.0, load.arrival * interval - rows) <= interval


def cap_of(view: QueryView) -> tuple[str, int] | None:
    """The option that caps the offsets of a batch, with its value; the smallest where sources differ."""
    caps = [
        (int(value), option)
        for option, value in view.plan.rate_limits.items()
        if option.lower() in CAPS and value.isdecimal() and int(value) > 0
    ]
    return (min(caps)[1], min(caps)[0]) if caps else _seen_cap(view)


def _seen_cap(view: QueryView) -> tuple[str, int] | None:
    """Five batches of one size that each leave rows behind are limited, whatever the option is called."""
    latest = view.baseline.steady[-MIN_BATCHES:]
    sizes = [sum(read_by_partition(batch).values()) for batch in latest]
    if (
        len(latest) < MIN_BATCHES
        or not all(backlog(batch) for batch in latest)
        or min(sizes) < MIN_ONE_SIZE_SHARE * max(sizes)
    ):
        return None
    return (UNKNOWN_OPTION, max(sizes)) if min(sizes) > 0 else None


def acquit(view: QueryView) -> str | None:
    cap, latest = cap_of(view), view.baseline.steady[-MIN_BATCHES:]
    if cap is None or not latest or _held(view) is not None:
        return None
    most = max(sum(read_by_partition(batch).values()) for batch in latest)
    seconds = median(batch.duration for batch in latest)
    if most < MIN_CAP_SHARE * cap[1]:
        return f"batches read at most {most:,} of the {cap[1]:,} offsets that {cap[0]} allows"
    if view.trigger.interval and seconds > MAX_FULL_SHARE * view.trigger.interval:
        return f"batches take {seconds:.1f} s of {view.trigger.interval:g} s: there is no time for larger ones"
    return None


RULE = Rule("rate-limited", "warning", check, __doc__, ("input-overload", "falling-behind"), acquit, saves=False)
