"""Intermittent sink: most batches are fast, but some wait long for the sink.

Meaning: a few batches take several times as long as the rest for the same number of rows. The extra time is in
    `add_batch` while no task computes: the target of the sink sometimes stalls (a lock, throttling, a leader election,
    a flush).
Impact: medians look healthy, but the freshness objective is missed: the rows of a slow batch, and those that arrive
    meanwhile, are late. Any further problem makes the query fall behind.
Diagnosis: 1. Compare the median and the 0.95 quantile of `ledgerops_batch_duration_seconds{query="QUERY"}` (panel
    "Batch duration"). If they are close, the slow batches have ended.
    2. Check the interval in the finding. Regular intervals point to a timer at the target (vacuum, compaction, a
    scheduled job), irregular ones to other clients.
    3. Check the target at the times of the slow batches: its slow log, locks, throttling. If it shows nothing, check
    the network to it.
Mitigation: move or limit the job at the target that causes the stalls. Write with a timeout and a retry, to another
    node of the target if there is one. If the target throttles, use a smaller connection pool. More cores do not help.
Evidence:
    slow_batches: number of slow batches in W. W = the newest 60 batches of the run that began in the last 120 s,
        without those of its first 10 s; if only one or two slow ones are left, without the first one only. A batch is
        slow if it takes longer than all of: 3 times the median of W, that median + 1 s, 1.1 times the trigger interval,
        and 2 x that median x max(1, its numInputRows / their median in W)
    batches: number of batches in W
    usual_batch_seconds: median of durationMs.triggerExecution / 1000 over W
    slow_batch_excess_seconds: median duration of the slow batches, minus usual_batch_seconds
    slow_batch_spacing_seconds: median time between the starts of slow batches, without those that follow a slow batch
        directly
    add_batch_share_of_excess: median over the slow batches of (durationMs.addBatch / 1000 - its median over W) /
        (duration - usual_batch_seconds)
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from statistics import median, pstdev
from typing import NamedTuple

from ledgerops.diagnosis import batch_time, starvation, state_cost
from ledgerops.diagnosis.criteria import FAR_RATIO
from ledgerops.diagnosis.rule import Rule
from ledgerops.model.finding import Component, Evidence, Finding, Remedy
from ledgerops.model.records import Progress
from ledgerops.signals.baseline import OVERRUN_RATIO
from ledgerops.signals.query_view import QueryView

MAX_BATCHES = 60  # newest batches that are judged
MAX_WINDOW_SECONDS = 120.0
MIN_BATCHES = 8  # needed to know what is usual
MIN_TIMES_USUAL = 3.0  # over the median; the JIT, a garbage collection or a burst at most double a batch
MIN_EXCESS_SECONDS = 1.0  # over the median; a shorter wait does not matter
MIN_EVENTS = 3  # separate slow batches: one is a hiccup, two may be a coincidence
MIN_FAR_TIMES_USUAL = 10.0  # times the median: so slow a batch counts even in the warm-up, which makes batches slow
MIN_GROSS_EVENTS = 2  # enough when each is far longer than usual and than the interval, and they add up to
MIN_GROSS_SECONDS = 15.0
MAX_SLOW_SHARE = 0.4  # of the batches; above it the sink is always slow, not intermittently
MIN_SINK_SHARE = 0.8  # of the excess that is in add_batch
MIN_OUTSIDE_SHARE = 0.5  # of the excess in which no task computes
MIN_TIMES_USUAL_PER_ROW = 2.0  # times the median time for a row: more rows may take longer
CLEARED_SPACINGS = 2.5  # times their spacing without a slow one: then it is over
MIN_MEDIAN_TASK_SHARE = 0.5  # median task over the longest, when all of them wait for the sink
COMPACTION_BATCHES = 10  # Spark's default interval for compacting state snapshots and metadata logs
# standard deviation over mean of the spacings; a timer, as seen through batches, stays below it
MAX_REGULAR_DEVIATION = 0.35


class Stalls(NamedTuple):
    """The newest batches, the usual seconds of one, the slow ones, and those of them that do not follow a slow one."""

    batches: Sequence[Progress]
    usual: float
    slow: Sequence[Progress]
    events: Sequence[Progress]
    least: int = MIN_EVENTS  # so many events are needed

    @property
    def spacings(self) -> Sequence[float]:
        """Seconds between the starts of the events."""
        return [later.started - earlier.started for earlier, later in pairwise(self.events)]

    @property
    def regular(self) -> bool:
        """Whether the events come in a rhythm."""
        spacings = self.spacings
        return len(spacings) > 1 and pstdev(spacings) < MAX_REGULAR_DEVIATION * (sum(spacings) / len(spacings))

    @property
    def rhythm(self) -> str:
        """When they come, as text."""
        spacing = median(self.spacings)
        if len(self.spacings) == 1:
            return f"{spacing:.0f} s apart"
        return f"every {spacing:.0f} s" if self.regular else f"at irregular intervals with a median of {spacing:.0f} s"


def check(view: QueryView) -> Iterator[Finding]:
    found = _stalls(view)
    if found is None or _explained(view, found):
        return
    batches, usual, slow, events, least = found
    in_sink, proof = _share_in_add_batch(batches, slow, usual), _outside(view, slow, usual)
    # a stateful query has rhythms of its own, such as windows that end
    in_state = proof is None and view.run.stateful and _in_state(batches, slow, usual)
    if in_sink < MIN_SINK_SHARE or proof is False or in_state:
        return
    excess = median(each.duration for each in slow) - usual
    sink = (view.plan.sink or batches[-1].sink).partition("[")[0] or "sink"
    at = batches[-1].ended
    yield Finding(
        f"{len(slow)} of the last {len(batches)} batches waited about {excess:.1f} s for the sink, {found.rhythm}; "
        f"a usual batch takes {usual:.1f} s",
        Component("sink", sink, "periodic" if found.regular else "irregular"),
        (
            Evidence("slow_batches", float(len(slow)), "count", f"< {least}", at),
            Evidence("batches", float(len(batches)), "count", f">= {MIN_BATCHES}", at),
            Evidence("usual_batch_seconds", usual, "seconds", "the usual", at),
            Evidence(
                "slow_batch_excess_seconds",
                excess,
                "seconds",
                f"< {max(MIN_EXCESS_SECONDS, (MIN_TIMES_USUAL - 1) * usual):.1f}",
                at,
            ),
            Evidence("slow_batch_spacing_seconds", median(found.spacings), "seconds", "none", at),
            Evidence("add_batch_share_of_excess", in_sink, "ratio", f"< {MIN_SINK_SHARE:g}", at),
        ),
        (
            Remedy(
                "check the target of the sink at the times of the slow writes: slow log, locks, throttling",
                "more cores do not help while the write waits",
            ),
            Remedy("write with a timeout and a retry", "a stalled write then no longer blocks the batch", safe=False),
        ),
        confidence=min(0.95, 0.5 + 0.05 * len(events) + (0.2 if proof else 0.0) + (0.1 if found.regular else 0.0)),
        began=events[0].started,
        harmless=not view.trigger.interval,  # nobody was promised a rhythm
        share=min(1.0, sum(each.duration - usual for each in slow) / sum(each.duration for each in batches)),
    )


def _stalls(view: QueryView) -> Stalls | None:
    """The stalls, if there are enough of them, they are not the rule, and the newest is not long ago."""
    interval = view.trigger.interval or 0.0
    long = OVERRUN_RATIO * interval + MIN_EXCESS_SECONDS
    settled = _newest(view, view.baseline.settled)
    if max((each.duration for each in settled), default=0.0) < long:
        return None
    found = _split(_newest(view, view.baseline.steady), interval)
    if 0 < len(found.events) < MIN_EVENTS:
        found = _split(settled, interval)
        if min((each.duration for each in found.slow), default=0.0) < MIN_FAR_TIMES_USUAL * found.usual:
            return None
    found = found._replace(least=_needed(view, found.slow, found.usual, interval))
    if (
        len(found.batches) < MIN_BATCHES
        or max(each.duration for each in found.batches) < long
        or len(found.events) < found.least
        or len(found.slow) > MAX_SLOW_SHARE * len(found.batches)
        or (interval and found.usual > interval)
    ):
        return None
    over = view.now - found.slow[-1].ended > CLEARED_SPACINGS * max(median(found.spacings), interval)
    return None if over else found


def _explained(view: QueryView, found: Stalls) -> bool:
    """Whether something else makes them slow: Spark tidies up, collects garbage, saves state, or has no cores."""
    batches, usual, slow, events, _ = found
    if _compaction(view, events) or _collected(view, batches, slow, usual) or starvation.starved(view):
        return True
    saving = median(state_cost.commit_seconds(view, each) / (each.duration - usual) for each in slow)
    return saving >= MIN_OUTSIDE_SHARE


def _needed(view: QueryView, slow: Sequence[Progress], usual: float, interval: float) -> int:
    """How many separate stalls it takes: fewer where each is so long that a third would come late, and it is known that
    no task computed meanwhile."""
    durations = [each.duration for each in slow]
    far = min(durations, default=0.0) >= max(MIN_FAR_TIMES_USUAL * usual, FAR_RATIO * interval)
    return (
        MIN_GROSS_EVENTS if far and sum(durations) >= MIN_GROSS_SECONDS and _outside(view, slow, usual) else MIN_EVENTS
    )


def _newest(view: QueryView, batches: Sequence[Progress]) -> Sequence[Progress]:
    return [each for each in batches[-MAX_BATCHES:] if each.started >= view.now - MAX_WINDOW_SECONDS]


def _split(batches: Sequence[Progress], interval: float) -> Stalls:
    if not batches:
        return Stalls(batches, 0.0, [], [])
    usual = median(each.duration for each in batches)
    slow = _slow(batches, usual, interval)
    events = [
        each for place, each in enumerate(batches) if each in slow and (place == 0 or batches[place - 1] not in slow)
    ]
    return Stalls(batches, usual, slow, events)


def _slow(batches: Sequence[Progress], usual: float, interval: float) -> Sequence[Progress]:
    rows = max(1.0, median(each.rows for each in batches))
    least = max(MIN_TIMES_USUAL * usual, usual + MIN_EXCESS_SECONDS, OVERRUN_RATIO * interval)
    return [
        each
        for each in batches
        if each.duration > least and each.duration / usual > MIN_TIMES_USUAL_PER_ROW * max(1.0, each.rows / rows)
    ]


def _share_in_add_batch(batches: Sequence[Progress], slow: Sequence[Progress], usual: float) -> float:
    before = median(each.phases.get("add_batch", 0.0) for each in batches)
    return median((each.phases.get("add_batch", 0.0) - before) / (each.duration - usual) for each in slow)


def _compaction(view: QueryView, events: Sequence[Progress]) -> bool:
    """Whether the slow ones come in the rhythm in which Spark itself tidies up."""
    return view.run.stateful and len({each.batch_id % COMPACTION_BATCHES for each in events}) == 1


def _in_state(batches: Sequence[Progress], slow: Sequence[Progress], usual: float) -> bool:
    """Whether the state may explain them: its work took half of the excess, over all tasks, or more left it than usual.

    Also where an operator does not say.
    """
    seconds = median(batch.state_seconds / (batch.duration - usual) for batch in slow)
    removed, usually = (
        median(sum(each.removed for each in batch.operators) for batch in some) for some in (slow, batches)
    )
    return (
        seconds >= MIN_OUTSIDE_SHARE
        or removed > MIN_TIMES_USUAL_PER_ROW * usually
        or not all(batch.operators for batch in slow)
    )


def _collected(view: QueryView, batches: Sequence[Progress], slow: Sequence[Progress], usual: float) -> bool:
    """Whether garbage collection explains it: the executors collected for half of all the excess."""
    samples = [host for host in view.hosts if host.at >= batches[0].started and host.executors]
    if len(samples) < 2:
        return False
    first = {each.executor_id: each.gc_seconds for each in samples[0].executors}
    grown = [each.gc_seconds - first[each.executor_id] for each in samples[-1].executors if each.executor_id in first]
    return max(grown, default=0.0) >= MIN_OUTSIDE_SHARE * sum(each.duration - usual for each in slow)


def _outside(view: QueryView, slow: Sequence[Progress], usual: float) -> bool | None:
    """Whether no task computes in the excess of those whose tasks are known; None when none are."""
    found = []
    for batch in slow:
        tasks = view.history.tasks_of(batch)
        inside = batch_time.stage_time(tasks) if tasks is not None else None
        if tasks is None or inside is None:
            continue
        writing = tasks.stages[-1]
        busy = writing.cpu_seconds + writing.gc_seconds + (tasks.python_seconds or 0.0)
        # one task of many: that is a straggler
        alone = writing.seconds_median < MIN_MEDIAN_TASK_SHARE * writing.seconds_max
        waits = busy < batch_time.MAX_WAITING_CPU_SHARE * writing.run_seconds and not alone
        waited = (writing.wall_seconds or 0.0) if waits else 0.0
        outside = batch.phases.get("add_batch", 0.0) - inside.seconds + waited
        found.append(outside >= MIN_OUTSIDE_SHARE * (batch.duration - usual))
    return None if not found else 2 * sum(found) > len(found)


RULE = Rule("intermittent-sink", "warning", check, __doc__, ("falling-behind", "trigger-overrun"))
