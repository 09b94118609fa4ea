"""Trigger overrun: batches outlast the trigger interval.

Meaning: a batch takes longer than the trigger interval, so the next batch starts late. The query has no spare time
    left.
Impact: results are later than the trigger interval suggests. With slightly more load, the backlog starts to grow.
Diagnosis: 1. Read the root cause named with this finding. `ledgerops diagnose --query QUERY` also shows the causes that
    were ruled out.
    2. Without one, find the phase that takes the time with
    `sum by (phase) (rate(ledgerops_batch_phase_seconds_total{query="QUERY"}[5m]))`. Mostly `add_batch` means tasks or
    the sink: see `slow-sink`, `key-skew` and `input-overload`.
    3. Mostly `query_planning`, `wal_commit` or `commit_offsets` means the fixed cost of each batch: compare
    `ledgerops_batch_overhead_seconds{query="QUERY"}` with the interval.
Mitigation: if results may be that old, set the interval to the time that a batch takes. Otherwise remove the root
    cause, or give the query more cores.
Evidence:
    batch_seconds_median: median of durationMs.triggerExecution / 1000 over the newest 10 batches of the run, without
        those of its first 10 s, and the running one if it has taken longer than 1.1 times the interval and the interval
        + 1 s. If there are fewer than 10, or 8 of the 10 take no longer than 1.1 times the interval: over the newest
        ones in a row that do take longer
    ledgerops_trigger_interval_seconds: the trigger interval of the plan; if unknown, estimated from the starts of the
        batches
    ledgerops_last_batch_duration_seconds: durationMs.triggerExecution / 1000 of the newest batch
    <phase>_seconds_median: median over the same finished batches of durationMs of the phase / 1000, for the phase with
        the largest such median (add_batch = addBatch, query_planning = queryPlanning, and so on)
"""

from collections.abc import Iterator, Sequence
from statistics import median

from ledgerops.diagnosis.rule import Rule
from ledgerops.metrics.latency import LAST_BATCH
from ledgerops.metrics.pressure import INTERVAL
from ledgerops.model.finding import Component, Evidence, Finding, Remedy
from ledgerops.model.records import Progress
from ledgerops.signals.baseline import OVERRUN_RATIO
from ledgerops.signals.query_view import QueryView

MAX_BATCHES = 10  # newest batches that are judged
MIN_OVERRUN_SHARE = 0.8  # of them: a garbage collection or a compaction lengthens at most one in five
MIN_OVERRUN_RATIO = 1.1  # the median batch over the interval; below it a batch only misses the next trigger
MIN_EXCESS_SECONDS = 1.0  # over the interval; less does not matter
MIN_STREAK_BATCHES = 3  # long batches in a row that prove it, the running one included
MIN_LONGEST_SHARE = 0.8  # of the longest of them; below it the query is recovering
MIN_STREAK_SECONDS = 40.0  # that they add up to; a burst of 20 s is processed in that time


def check(view: QueryView) -> Iterator[Finding]:
    interval = view.trigger.interval
    if not interval or view.last is None:
        return
    latest = view.baseline.steady[-MAX_BATCHES:]
    durations = [batch.duration for batch in latest]
    running = view.run.running_seconds or 0.0
    overdue = running > max(OVERRUN_RATIO * interval, interval + MIN_EXCESS_SECONDS)
    if overdue:
        durations.append(running)
    proof = _proof(view, durations, interval)
    middle = median(proof) if proof else 0.0
    if middle < MIN_OVERRUN_RATIO * interval:
        return
    over = sum(each > OVERRUN_RATIO * interval for each in proof)
    finished = min(len(latest), len(proof) - overdue)
    phases = _phase_medians(latest[-finished:] if finished else [])
    longest = max(phases, key=lambda phase: phases[phase], default=None)
    at = view.now
    evidence = [
        Evidence("batch_seconds_median", middle, "seconds", f"<= {interval:g}", at),
        Evidence(INTERVAL.name, interval, "seconds", f">= {middle:.1f}", at),
        Evidence(LAST_BATCH.name, view.last.duration, "seconds", f"<= {interval:g}", at),
    ]
    tail = ""
    if longest is not None:
        evidence.append(Evidence(f"{longest}_seconds_median", phases[longest], "seconds", f"<= {interval:g}", at))
        tail = f", most of it {longest}"
    yield Finding(
        f"{over} of the last {len(proof)} batches outlast the interval of {interval:g} s; "
        f"the median is {middle:.1f} s{tail}",
        Component("query", view.query, longest),
        tuple(evidence),
        (
            Remedy(
                f"set the trigger interval to {middle * 1.5:.0f} s if results may be that old",
                "fewer, larger batches spend less time on the fixed cost of each batch",
            ),
        ),
        confidence=min(0.95, 0.6 + 0.1 * middle / interval),
        began=latest[-min(len(latest), len(proof))].started if latest else None,
    )


def _proof(view: QueryView, durations: list[float], interval: float) -> list[float]:
    """The durations that prove it: all if most outlast the interval, else the latest in a row that do; else none."""
    lasts = sum(durations) >= MIN_STREAK_SECONDS or _goes_on(view, interval)
    over = sum(each > OVERRUN_RATIO * interval for each in durations)
    if len(view.baseline.steady) >= MAX_BATCHES and lasts and over >= MIN_OVERRUN_SHARE * MAX_BATCHES:
        return durations
    streak = _streak(durations, interval)
    long_enough = len(streak) >= MIN_STREAK_BATCHES and sum(streak) >= MIN_STREAK_SECONDS
    return streak if long_enough and streak[0] >= MIN_LONGEST_SHARE * max(streak) else []


def _phase_medians(batches: Sequence[Progress]) -> dict[str, float]:
    """Median seconds of each phase that any of these batches had."""
    phases = dict.fromkeys(phase for batch in batches for phase in batch.phases)
    return {phase: median(batch.phases.get(phase, 0.0) for batch in batches) for phase in phases}


def _goes_on(view: QueryView, interval: float) -> bool:
    """Whether short batches have been outlasting the interval for long: twice as many, and they get no shorter."""
    latest = [batch.duration for batch in view.baseline.steady[-2 * MAX_BATCHES :]]
    over = sum(each > OVERRUN_RATIO * interval for each in latest)
    return (
        sum(latest) >= MIN_STREAK_SECONDS
        and over >= MIN_OVERRUN_SHARE * 2 * MAX_BATCHES
        and latest[-1] >= MIN_LONGEST_SHARE * median(latest)
    )


def _streak(durations: list[float], interval: float) -> list[float]:
    """The latest batches in a row that outlast the interval."""
    streak: list[float] = []
    for each in reversed(durations):
        if each <= OVERRUN_RATIO * interval:
            break
        streak.append(each)
    return streak


RULE = Rule("trigger-overrun", "warning", check, __doc__, ("falling-behind",))
