"""Input overload: rows arrive faster than the query can work them off.

Meaning: the arrival rate is above what the query does while it works without a pause, and the query itself is as
    fast as it was. The load changed, not the query.
Impact: the backlog grows by the difference for as long as the load stays; every result is later than the one before.
Diagnosis: compare `sum(ledgerops_arrival_rows_per_second{query="QUERY"})` with
    `ledgerops_capacity_rows_per_second{query="QUERY"}`; the ratio is `ledgerops_pressure_ratio`. Look which source
    brings the rows with the `source` label, and ask its producer whether that is meant.
Mitigation: give the query more cores, at most as many as the source has partitions; or take the load away at the
    producer. If batches end well within their interval, the limit of the source holds the query back: raise it.
Evidence:
    arrival_rows_per_second: growth of the sum of sources[].latestOffset from the third newest batch to the newest, over
        the time between these looks, each at timestamp plus durationMs.latestOffset (times the rows for each offset,
        where a source has not one).
    worked_off_rows_per_second: numInputRows of these three batches over their time, each with its
        durationMs.triggerExecution or the trigger interval, whichever is more.
    arrival_ratio: the first / the second.
    ledgerops_source_lag_seconds: now less the instant at which the endOffset of the newest batch was the head of its
        partition (interpolated between the latestOffset of earlier batches, each seen at timestamp plus
        durationMs.latestOffset), the largest over the partitions; where rows are left in the source.
    result_delay_seconds: now less the instant (timestamp plus durationMs.latestOffset) at which the batch before the
        one at work, or before the newest one, asked for its offsets; where each batch takes all there is.
    seconds_to_breach: (the freshness objective less that lag) / (1 - 1 / arrival_ratio), at least 0: while R times
        as much arrives as is worked off, the lag grows by 1 - 1/R seconds a second.
    slowdown_at_equal_rows: median duration of the latest 3 batches with rows over that of the earlier ones that did not
        outlast their interval, the latter times the ratio of their median rows where the latest have more.
"""

from collections.abc import Iterator

from ledgerops.diagnosis import overload, task_skew
from ledgerops.diagnosis.rule import Rule
from ledgerops.metrics.pressure import LAG
from ledgerops.model.finding import Component, Evidence, Finding, Remedy
from ledgerops.signals.baseline import RECENT_BATCHES
from ledgerops.signals.query_view import QueryView

OVERLOADED = 1.05  # arrival over what is processed, of a query that is known to fall behind
SLOWER = 1.5  # the query needs so much longer than usual for its rows: then the query changed, not (only) the load


def check(view: QueryView) -> Iterator[Finding]:
    grown, load = overload.growth(view), overload.load(view)
    if grown is None or load is None or view.last is None or load.processed <= 0:
        return
    ratio = load.arrival / load.processed
    if ratio < OVERLOADED or _other_cause(view, ratio) is not None:
        return
    interval = view.trigger.interval or 0.0
    held_back = bool(view.plan.rate_limits) and all(
        batch.duration < 0.7 * interval for batch in view.batches[-RECENT_BATCHES:]
    )
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
        evidence.append(Evidence("slowdown_at_equal_rows", lost.factor, "ratio", f"< {SLOWER:g}", at))
    yield Finding(
        f"{load.arrival:,.0f} rows/s arrive, {ratio:.1f} times the {load.processed:,.0f} rows/s that are worked off; "
        + (
            f"results will be {view.freshness:g} s late in {breach:.0f} s" if breach else "results are too late already"
        ),
        Component("source", where.name if where else view.query),
        tuple(evidence),
        _remedies(view, held_back),
        confidence=min(0.95, 0.6 + 0.2 * (ratio - 1) + (0.15 if lost is not None else 0.0)),
        began=grown.since,
    )


def _remedies(view: QueryView, held_back: bool) -> tuple[Remedy, ...]:
    if held_back:
        limits = ", ".join(sorted(view.plan.rate_limits))
        return (Remedy(f"raise {limits}", "batches end well within the interval: the limit holds the query back"),)
    partitions = len(view.lag.backlog_by_partition)
    return (
        Remedy(
            f"add cores, up to {partitions} for this source" if partitions > 1 else "add cores",
            "each source partition is read by one task at a time",
            safe=False,
        ),
        Remedy(
            "ask the producer whether the load is meant, and spread or reduce it", "only fewer rows or more cores help"
        ),
    )


def _other_cause(view: QueryView, ratio: float) -> str | None:
    """What took the capacity away, if the query would keep up without it."""
    interval = view.trigger.interval or 0.0
    if all(batch.duration < interval for batch in view.batches[-RECENT_BATCHES:]):
        return None  # the query rests between its batches: no time is wasted
    lost = view.baseline.slowdown
    if lost is not None and lost.factor >= SLOWER and ratio / lost.factor < OVERLOADED:
        return (
            f"a batch of {lost.rows:,.0f} rows takes {lost.seconds:.1f} s where {lost.usual_rows:,.0f} rows took "
            f"{lost.usual_seconds:.1f} s: the query became slower"
        )
    waste = task_skew.wasted(view)
    if waste is not None and ratio / waste.factor < OVERLOADED:
        return f"{waste.seconds:.1f} s of a batch of {waste.duration:.1f} s go into {waste.what}"
    return None


def acquit(view: QueryView) -> str | None:
    load = overload.load(view)
    if load is None or load.processed <= 0:
        return None
    ratio = load.arrival / load.processed
    if ratio < OVERLOADED:
        return f"{load.arrival:,.0f} rows/s arrive and {load.processed:,.0f} rows/s are worked off"
    return _other_cause(view, ratio)


RULE = Rule(
    slug="input-overload",
    severity="warning",
    check=check,
    runbook=__doc__,
    explains=("falling-behind", "trigger-overrun"),
    acquit=acquit,
)
