"""Input overload: rows arrive faster than the query can process them.

Meaning: the arrival rate is above the rate that the query reaches without pauses between batches. The load changed:
    more rows arrive, or each of them is more work.
Impact: the backlog grows by the difference between the two rates while the load lasts. Each result is later than the
    one before it.
Diagnosis: 1. Compare `sum(ledgerops_arrival_rows_per_second{app="APP",query="QUERY"})` with
    `ledgerops_capacity_rows_per_second{app="APP",query="QUERY"}`. If arrival is not higher now, the peak is over: wait
    for the backlog to clear.
    2. `ledgerops_arrival_rows_per_second{app="APP",query="QUERY"}` by `source` shows which source the rows come from.
    Ask its producer whether this load is intended.
    3. Look for windows whose length is many times their slide: each row is in as many of them. If no more rows arrive
    than before, look into the rows: longer lists for `explode`, longer texts, keys with more matches in a join.
    4. If batches end well within the trigger interval, the rate limit of the source is too low: see `rate-limited`.
Mitigation: check `ledgerops_retention_headroom_seconds{app="APP",query="QUERY"}` and raise the retention of the topic
    if less than an hour is left. Then reduce the load at the producer, or give the query more cores, at most as many as
    the source has partitions.
Evidence:
    arrival_rows_per_second: growth of the sum of sources[].latestOffset from the third newest batch to the newest,
        divided by the time between these samples. Each is taken at timestamp plus durationMs.latestOffset. If a source
        does not have exactly one row per offset, the result is multiplied by its rows per offset. Of sources that do
        not report it: numInputRows of the newest two of these batches divided by the same time, unless an option caps
        a batch and no source reports it, or over 1.15 times as much as usual comes to those that do.
    processed_rows_per_second: numInputRows of these three batches, of the same sources, divided by their time, each
        counted with durationMs.triggerExecution or the trigger interval, whichever is longer.
    arrival_ratio: the first divided by the second.
    ledgerops_source_lag_seconds: now - when the endOffset of the newest batch was the head of its partition,
        interpolated between the heads that were seen; the largest over the partitions. Given if rows are left
    result_delay_seconds: now minus the time (timestamp plus durationMs.latestOffset) at which the batch before the
        running one, or before the newest one, asked for its offsets. Given if each batch reads all available rows.
    seconds_to_breach: (freshness objective - that lag) / (1 - 1 / arrival_ratio), at least 0: while R times as many
        rows arrive as are processed, the lag grows by 1 - 1/R seconds per second.
    work_on_rows_share: what python, state_update, shuffle, spill and cpu of the profile (`docs/verdict.md`) take,
        divided by the batch; unless more rows a second than usual explain it, what they take beyond the usual. Where
        that is less than half, at least what so many more rows need of all parts, as `saving_seconds` allows for it
    ledgerops_last_batch_duration_seconds: durationMs.triggerExecution / 1000 of the newest batch
    ledgerops_trigger_interval_seconds: the trigger interval of the plan
    stretch_by_<part>: where others have the cores: how many times as long the work takes, as for `cpu-saturated`
    stretch_of_tasks: the same for tasks that compute
"""

from collections.abc import Collection, Iterator
from statistics import median

from ledgerops.common.format import counted, duration
from ledgerops.diagnosis.facts import growth
from ledgerops.diagnosis.facts.more_tasks import is_its_rows, more_rows_need, overload_steps, work_on_rows
from ledgerops.diagnosis.harm import Proof, owed, owes_for
from ledgerops.diagnosis.limits import MOSTLY, NOISE_SHARE
from ledgerops.diagnosis.profile import profile
from ledgerops.diagnosis.rule import LATE, UNSURE, Rule, confidence
from ledgerops.metrics.latency import LAST_BATCH
from ledgerops.metrics.pressure import INTERVAL, LAG
from ledgerops.model.finding import Component, Evidence, Finding
from ledgerops.signals.baseline import RECENT_BATCHES
from ledgerops.signals.query_view import QueryView
from ledgerops.signals.rate_cap import ROOM_SHARE
from ledgerops.signals.rates import read_over

# of a run that is slow from its start: the JVM compiles at first; and of rows that are no work: a burst is over then
PROOF = Proof(late=4, owed=0.05, seconds=40.0)


def check(view: QueryView) -> Iterator[Finding]:
    newest = view.baseline.recent or view.batches[-1:]
    if all(batch.duration < ROOM_SHARE * view.interval for batch in newest):
        return  # batches end well within the interval: something else holds the query back
    grown, load = growth.growth(view), growth.load(view)
    ratio = (load.ratio if load is not None else None) or 0.0
    lost = view.baseline.slowdown  # a query that would keep up if it took as long as it used to became slower
    slower = lost is not None and ratio / lost.factor < growth.MIN_ARRIVAL_RATIO
    if view.last is None or grown is None or load is None or ratio < growth.least_ratio(view) or slower:
        yield from _too_much_work(view)
        return
    at = view.last.ended
    lag = LAG.name if grown.form == "backlog" else "result_delay_seconds"
    breach = max(0.0, view.freshness - grown.lag) / (1 - 1 / ratio)
    late = f"results will be {view.freshness:g} s late in {duration(breach)}"
    soon = late if breach else "results are already too late"
    usually = f" (usually {usual:,.0f})" if (usual := read_over(view.baseline.usual, load.sources)) is not None else ""
    yield Finding(
        f"{load.arrival:,.0f} rows/s arrive{usually}, {ratio:.1f} times the {load.processed:,.0f} rows/s "
        f"that are processed, in the last {counted(min(RECENT_BATCHES, len(view.batches)), 'batch', 'batches')}; "
        f"{soon}",
        _component(view, load.sources),
        (
            Evidence("arrival_rows_per_second", load.arrival, "rows/s", f"<= {load.processed:,.0f}", at),
            Evidence("processed_rows_per_second", load.processed, "rows/s", f">= {load.arrival:,.0f}", at),
            Evidence("arrival_ratio", ratio, "ratio", "<= 1", at),
            Evidence(lag, grown.lag, "seconds", "steady", view.now),
            Evidence("seconds_to_breach", breach, "seconds", "never", at),
        ),
        overload_steps(view, view.last.duration),
        confidence=confidence(ratio, 1.0) if is_its_rows(view) else UNSURE,
        began=grown.since,
        share=None if view.baseline.usual else NOISE_SHARE,  # any cause that would save more comes first
    )


def _component(view: QueryView, names: Collection[str] | None = None) -> Component:
    known = [source for source in view.sources if names is None or source.name in names]
    where = max(known, key=lambda source: source.rows, default=None)
    return Component("source", where.name if where else view.query)


def _too_much_work(view: QueryView) -> Iterator[Finding]:
    """Batches that outlast the interval because of the work on their rows, while each reads all available rows."""
    interval, found = view.trigger.interval, profile(view)
    if not interval or found is None or view.last is None or owed(view) is None:
        return
    time, (share, dearer) = owed(view), work_on_rows(view, found)
    if share < MOSTLY or not view.baseline.usual:
        time, share = owes_for(view, PROOF), max(share, more_rows_need(view, found))
    if time is None or time.turns[-1] is not time.late[-1]:
        return
    rows = [turn.batch.rows for turn in time.turns if turn.batch]
    if share < MOSTLY or not rows or view.last.rows < median(rows) / 2:
        return
    at, seconds = view.last.ended, view.last.duration
    more_rows = "more rows arrive in an interval than the query can process in it"
    so = "each row is more work than it used to be" if dearer else more_rows
    yield Finding(
        f"the work on {view.last.rows:,} rows takes {share:.0%} of a batch of {duration(seconds)}, and the trigger "
        f"interval is {interval:g} s: {so}",
        _component(view),
        (
            Evidence("work_on_rows_share", share, "ratio", f"< {MOSTLY:g}", found.at),
            Evidence(LAST_BATCH.name, seconds, "seconds", f"<= {interval:g}", at),
            Evidence(INTERVAL.name, interval, "seconds", f">= {seconds:.1f}", at),
            *found.stretches,
        ),
        overload_steps(view, seconds, dearer=dearer),
        confidence=UNSURE,
        began=time.since,
        share=NOISE_SHARE,
        batches=found.batches,
        usual_batches=found.usual_batches,
    )


def ruled_out(view: QueryView) -> str | None:
    load = growth.load(view)
    if load is None or load.ratio is None or load.ratio >= growth.least_ratio(view):
        return None
    noise = ": more by no more than the noise of a few batches" if round(load.arrival) > round(load.processed) else ""
    return f"{load.arrival:,.0f} rows/s arrive and {load.processed:,.0f} rows/s are processed{noise}"


RULE = Rule("input-overload", "warning", check, __doc__, LATE, ruled_out)
