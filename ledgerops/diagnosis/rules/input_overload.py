"""Input overload: rows arrive faster than the query can process them.

Meaning: the arrival rate is above the rate that the query reaches without pauses between batches. The query itself is
    as fast as before: the load changed.
Impact: the backlog grows by the difference between the two rates while the load lasts. Each result is later than the
    one before it.
Diagnosis: 1. Compare `sum(ledgerops_arrival_rows_per_second{query="QUERY"})` with
    `ledgerops_capacity_rows_per_second{query="QUERY"}`. If arrival is not higher now, the peak is over: wait for the
    backlog to clear.
    2. `ledgerops_arrival_rows_per_second{query="QUERY"}` by `source` shows which source the rows come from. Ask its
    producer whether this load is intended.
    3. If batches end well within the trigger interval, the rate limit of the source is too low: see `rate-limited`.
Mitigation: check `ledgerops_retention_headroom_seconds{query="QUERY"}` and raise the retention of the topic if less
    than an hour is left. Then reduce the load at the producer, or give the query more cores, at most as many as the
    source has partitions.
Evidence:
    arrival_rows_per_second: growth of the sum of sources[].latestOffset from the third newest batch to the newest,
        divided by the time between these samples. Each is taken at timestamp plus durationMs.latestOffset. If a source
        does not have exactly one row per offset, the result is multiplied by its rows per offset. Where no source
        reports latestOffset and no option caps a batch: numInputRows of the newest two of these batches divided by the
        same time.
    worked_off_rows_per_second: numInputRows of these three batches divided by their time, each counted with
        durationMs.triggerExecution or the trigger interval, whichever is longer.
    arrival_ratio: the first divided by the second.
    ledgerops_source_lag_seconds: now minus the time at which the endOffset of the newest batch was the head of its
        partition; the largest over the partitions. The time is interpolated between the latestOffset of earlier
        batches, each sampled at timestamp plus durationMs.latestOffset. Given if rows are left in the source.
    result_delay_seconds: now minus the time (timestamp plus durationMs.latestOffset) at which the batch before the
        running one, or before the newest one, asked for its offsets. Given if each batch reads all available rows.
    seconds_to_breach: (freshness objective - that lag) / (1 - 1 / arrival_ratio), at least 0: while R times as many
        rows arrive as are processed, the lag grows by 1 - 1/R seconds per second.
    slowdown_at_equal_rows: median duration of the latest 3 batches with rows, divided by that of the earlier ones that
        took no longer than the interval. If the latest batches have more rows, the earlier duration is first multiplied
        by the ratio of the median rows.
"""

from collections.abc import Iterator
from statistics import median

from ledgerops.common.format import counted
from ledgerops.diagnosis import batch_time, harm, overload, task_skew
from ledgerops.diagnosis.attribution import attribution
from ledgerops.diagnosis.criteria import MIN_SHARE_OF_LONGEST, OVER_RATIO, TREND_BATCHES
from ledgerops.diagnosis.rule import Rule
from ledgerops.metrics.latency import LAST_BATCH
from ledgerops.metrics.pressure import INTERVAL, LAG
from ledgerops.model.finding import Component, Evidence, Finding, Remedy
from ledgerops.signals.baseline import RECENT_BATCHES
from ledgerops.signals.query_view import QueryView

MIN_ARRIVAL_RATIO = 1.15  # arrival over processing rate; less may be the noise of a few batches
MAX_ROOMY_SHARE = 0.7  # of the interval: shorter batches leave room, so more cores do not help
MIN_RUN_SECONDS = 40.0  # before the batches of a run count as slow from the start: at first the JVM compiles
MIN_BATCHES = 8  # after the warm-up, where no past shows how long they used to take
MIN_WORK_SHARE = 0.5  # of a batch that is work on its rows
FROM_BIRTH_SHARE = 0.1  # for the ranking: any cause that would save more comes first
ON_ROWS = ("cpu", "python", "state_update", "shuffle", "waiting")
# how much longer than usual the query takes for its rows: above it the query changed, not (only) the load
MIN_SLOWDOWN = 1.5


def check(view: QueryView) -> Iterator[Finding]:
    grown, load = overload.growth(view), overload.load(view)
    if grown is None:
        yield from _too_much_work(view)
    if grown is None or load is None or view.last is None or load.processed <= 0:
        return
    ratio = load.arrival / load.processed
    from_birth = not view.baseline.usual
    if ratio < (OVER_RATIO if from_birth else MIN_ARRIVAL_RATIO) or _other_cause(view, ratio) is not None:
        return
    interval = view.trigger.interval or 0.0
    held_back = all(batch.duration < MAX_ROOMY_SHARE * interval for batch in view.batches[-RECENT_BATCHES:])
    where = max(view.last.sources, key=lambda source: source.rows, default=None)
    at = view.last.ended
    evidence = [
        Evidence("arrival_rows_per_second", load.arrival, "rows/s", f"<= {load.processed:,.0f}", at),
        Evidence("worked_off_rows_per_second", load.processed, "rows/s", f">= {load.arrival:,.0f}", at),
        Evidence("arrival_ratio", ratio, "ratio", "<= 1", at),
    ]
    lag = LAG.name if grown.form == "backlog" else "result_delay_seconds"
    evidence.append(Evidence(lag, grown.lag, "seconds", "steady", view.now))
    breach = max(0.0, view.freshness - grown.lag) / (1 - 1 / ratio)
    evidence.append(Evidence("seconds_to_breach", breach, "seconds", "never", at))
    lost = view.baseline.slowdown
    if lost is not None:
        evidence.append(Evidence("slowdown_at_equal_rows", lost.factor, "ratio", f"< {MIN_SLOWDOWN:g}", at))
    yield Finding(
        f"{load.arrival:,.0f} rows/s arrive, {ratio:.1f} times the {load.processed:,.0f} rows/s that are processed; "
        + (
            f"results will be {view.freshness:g} s late in {breach:.0f} s" if breach else "results are already too late"
        ),
        Component("source", where.name if where else view.query),
        tuple(evidence),
        _remedies(view, held_back),
        confidence=min(0.95, 0.6 + 0.2 * (ratio - 1) + (0.15 if lost is not None else 0.0)),
        began=grown.since,
        share=FROM_BIRTH_SHARE if from_birth else None,
    )


def _remedies(view: QueryView, held_back: bool) -> tuple[Remedy, ...]:
    if held_back:
        limits = ", ".join(sorted(view.plan.rate_limits)) or "the limit of the source on a batch"
        return (Remedy(f"raise {limits}", "batches end well within the interval: the limit is the bottleneck"),)
    return (
        _more_cores(view),
        Remedy(
            "ask the producer whether the load is intended; spread or reduce it", "only fewer rows or more cores help"
        ),
    )


def _more_cores(view: QueryView) -> Remedy:
    """More cores help only as far as there are tasks for them."""
    cores, newest = view.cluster.cores, batch_time.pairs(view)[:1]
    stages = [stage for _, tasks in newest for stage in tasks.stages if stage.wall_seconds is not None]
    longest = max(stages, key=lambda stage: stage.wall_seconds or 0.0, default=None)
    if longest is None:
        partitions = len(view.lag.backlog_by_partition)
        action = f"add cores, up to {partitions} for this source" if partitions > 1 else "add cores"
        return Remedy(action, "each source partition is read by one task at a time", safe=False)
    if cores and longest.tasks <= cores:
        return Remedy(
            "split the input into more tasks (source partitions, minPartitions or repartition), then add cores",
            f"more would be idle: {counted(longest.tasks, 'task')} in the longest stage, {counted(cores, 'core')}",
            safe=False,
        )
    return Remedy(f"add cores, up to {longest.tasks}", "the longest stage has as many tasks", safe=False)


def _other_cause(view: QueryView, ratio: float) -> str | None:
    """The cause of the lost capacity, if the query would keep up without it."""
    interval = view.trigger.interval or 0.0
    if all(batch.duration < interval for batch in view.batches[-RECENT_BATCHES:]):
        return None  # the query pauses between its batches: no time is wasted
    lost = view.baseline.slowdown
    if lost is not None and lost.factor >= MIN_SLOWDOWN and ratio / lost.factor < MIN_ARRIVAL_RATIO:
        return (
            f"a batch of {lost.rows:,.0f} rows takes {lost.seconds:.1f} s, and {lost.usual_rows:,.0f} rows used to "
            f"take {lost.usual_seconds:.1f} s: the query became slower"
        )
    waste = task_skew.wasted(view)
    if waste is not None and ratio / waste.factor < MIN_ARRIVAL_RATIO:
        return f"{waste.seconds:.1f} s of a batch of {waste.duration:.1f} s are spent on {waste.what}"
    return None


def _too_much_work(view: QueryView) -> Iterator[Finding]:
    """Batches that outlast the interval because of the work on their rows, while each reads all available rows."""
    interval, found = view.trigger.interval, harm.harm(view)
    if not interval or found is None or found.kind != "overrun" or view.last is None:
        return
    parts = {part.part: part for part in attribution(view)}
    work = sum(parts[name].share for name in ON_ROWS if name in parts)
    newest = view.baseline.steady[-MIN_BATCHES:]
    durations = [batch.duration for batch in newest]
    needed = TREND_BATCHES if sum(durations) >= MIN_RUN_SECONDS else MIN_BATCHES
    long = all(each > OVER_RATIO * interval for each in durations)
    if newest and (
        durations[-1] < MIN_SHARE_OF_LONGEST * max(durations) or newest[-1].rows < median(b.rows for b in newest) / 2
    ):
        return  # it recovers, or rows are not what the newest batch took long for
    lasts = view.now - view.batches[0].started >= MIN_RUN_SECONDS
    if view.baseline.usual or len(newest) < needed or not long or not lasts or work < MIN_WORK_SHARE:
        return
    if (view.capacity.overhead or 0.0) > interval:
        return
    where = max(view.last.sources, key=lambda source: source.rows, default=None)
    at = view.last.ended
    yield Finding(
        f"the work on {view.last.rows:,} rows takes {work:.0%} of a batch of {view.last.duration:.1f} s, and the "
        f"trigger interval is {interval:g} s: more rows arrive in an interval than the query can process in it",
        Component("source", where.name if where else view.query),
        (
            Evidence(LAST_BATCH.name, view.last.duration, "seconds", f"<= {interval:g}", at),
            Evidence(INTERVAL.name, interval, "seconds", f">= {view.last.duration:.1f}", at),
        ),
        _remedies(view, held_back=False),
        confidence=0.5,
        began=found.since,
        share=FROM_BIRTH_SHARE,
    )


def acquit(view: QueryView) -> str | None:
    load = overload.load(view)
    if load is None or load.processed <= 0:
        return None
    ratio = load.arrival / load.processed
    if ratio < MIN_ARRIVAL_RATIO:
        return f"{load.arrival:,.0f} rows/s arrive and {load.processed:,.0f} rows/s are processed"
    return _other_cause(view, ratio)


RULE = Rule(
    "input-overload",
    "warning",
    check,
    __doc__,
    ("falling-behind", "trigger-overrun"),
    acquit,
    residual=True,
    saves=False,
)
