"""Small batch overhead: the fixed cost of each batch takes most of it.

Meaning: planning the query, compiling its code, starting its stages and writing the checkpoint take the same time for
    one row as for thousands. Here they take nearly the whole batch.
Impact: the query runs without a pause at a low load, and results are later than the interval suggests. It takes cores
    and driver time from other queries.
Diagnosis: 1. Compare `ledgerops_batch_overhead_seconds{query="QUERY"}` with
    `ledgerops_trigger_interval_seconds{query="QUERY"}`. If the overhead is smaller, the rows take the time: see
    `trigger-overrun`.
    2. `sum by (phase) (rate(ledgerops_batch_phase_seconds_total{query="QUERY"}[5m]))` shows which cost it is. Much
    `query_planning` means a large plan; much `add_batch` with tasks that hardly run means many stages.
    3. Check `ledgerops_host_cpu_busy_ratio`. Near 1, the driver itself waits for a core: see `cpu-saturated`.
Mitigation: set a longer trigger interval: fewer, larger batches have less fixed cost, and freshness hardly changes.
    Then simplify the plan: fewer columns, unions and joins, no list of many files. More cores do not help: the driver
    does this work.
Evidence:
    overhead_seconds: median over P of the duration minus task_seconds. P = the newest 5 batches whose tasks were read,
        without the first batch of the run; if 2 or more in a row up to now take longer than 1.1 times the interval,
        only those
    overhead_share: median over P of overhead_seconds divided by durationMs.triggerExecution / 1000
    task_seconds: median over P of the sum over the stages of run_seconds / min(cores of active executors, tasks of the
        widest stage), or seconds_max if that is more; at most the batch duration
    query_planning_seconds: median over P of durationMs.queryPlanning / 1000
    rows_per_batch: median over P of numInputRows
    seconds_without_rows: if the tasks compute most of the time, whatever their rows: intercept of the Theil-Sen line
        through numInputRows and durationMs.triggerExecution / 1000 of the newest 60 batches with rows, without the
        first of the run; only pairs of batches whose rows differ by 1.15 times or more count; at most the median of
        durationMs.triggerExecution / 1000 over P
    without_rows_share: seconds_without_rows divided by the median of durationMs.triggerExecution / 1000 over P
"""

from collections.abc import Iterator
from math import prod
from statistics import median
from typing import NamedTuple

from ledgerops.common.format import counted
from ledgerops.diagnosis import batch_time, harm, starvation, task_skew
from ledgerops.diagnosis.criteria import OVER_RATIO
from ledgerops.diagnosis.rule import Rule
from ledgerops.diagnosis.rules import checkpoint_slow, slow_source, too_many_tasks
from ledgerops.model.finding import Component, Evidence, Finding, Remedy
from ledgerops.signals.memo import once
from ledgerops.signals.query_view import QueryView
from ledgerops.signals.theil_sen import fit_line

MIN_OVERHEAD_SHARE = 0.7  # of the batch
MIN_SECONDS = 1.0  # of a batch; a shorter one does not matter
FIT_BATCHES = 60  # newest batches that the line goes through
MIN_ROWS_RATIO = 1.15  # between the rows of two batches that the line compares
# of the ratios of unusual batches to the usual rows: one with 1.8 times the rows, or five with 1.15
MIN_ROWS_RATIO_PRODUCT = 1.8
MAX_RECORDS_PER_TASK = 100  # with more the work may be in the rows
MIN_COMPUTING_SHARE = 0.5  # of a batch's time, outside tasks or on the CPU: waiting tasks are another cause
MIN_SLOWDOWN = 1.5  # of the overhead over the usual: if it grew, something else happened, and that is the cause


class Overhead(NamedTuple):
    """How the time of a batch divides into tasks and the rest, in seconds, by medians."""

    seconds: float  # outside tasks
    share: float  # of the batch
    tasks: float  # of work, on all cores
    planning: float
    rows: float
    duration: float


@once
def overhead(view: QueryView) -> Overhead | None:
    """Medians over the newest batches whose tasks are known."""
    return _overhead(view, batch_time.pairs(view))


def _overhead(view: QueryView, known: batch_time.Pairs) -> Overhead | None:
    found = []
    if view.cluster.cores is None:
        return None  # the time of the tasks is not known in wall time
    for batch, tasks in known:
        if len(tasks.stages) >= batch_time.MAX_READ_STAGES:
            continue  # what the others ran is not known
        width = batch_time.slots(view, max(stage.tasks for stage in tasks.stages))
        # a stage takes at least as long as its longest task, which is another cause where it is the only long one
        ran = min(batch.duration, sum(max(stage.seconds_max, stage.run_seconds / width) for stage in tasks.stages))
        rest, planning = batch.duration - ran, batch.phases.get("query_planning", 0.0)
        found.append(Overhead(rest, rest / batch.duration, ran, planning, batch.rows, batch.duration))
    if len(found) < batch_time.MIN_PAIRS:
        return None
    return Overhead(*(median(each) for each in zip(*found, strict=True)))


class Fixed(NamedTuple):
    """Seconds that a batch takes without any row, by the line through its rows and seconds."""

    seconds: float
    share: float


@once
def fixed(view: QueryView) -> Fixed | None:
    """None where the rows of the batches are too much alike, or their tasks have many rows or wait."""
    known, width = batch_time.pairs(view), view.cluster.cores
    batches = [batch for batch in view.baseline.settled[-FIT_BATCHES:] if batch.rows > 0]
    if len(known) < batch_time.MIN_PAIRS or width is None or not batches:
        return None
    usual = median(batch.rows for batch in batches)
    ratios = [max(batch.rows, usual) / min(batch.rows, usual) for batch in batches]
    line = fit_line([batch.rows for batch in batches], [batch.duration for batch in batches], MIN_ROWS_RATIO)
    if prod(ratio for ratio in ratios if ratio >= MIN_ROWS_RATIO) < MIN_ROWS_RATIO_PRODUCT or line is None:
        return None
    computes = []
    for batch, tasks in known:
        inside = batch_time.stage_time(tasks)
        if inside is None or any(stage.records > MAX_RECORDS_PER_TASK * stage.tasks for stage in tasks.stages):
            return None
        waits = max(0.0, tasks.run_seconds - tasks.cpu_seconds - tasks.gc_seconds)
        computes.append(1 - waits / max(tasks.run_seconds, 0.001) * inside.seconds / batch.duration)
    duration = median(batch.duration for batch, _ in known)
    seconds = min(line.overhead, duration)
    return Fixed(seconds, seconds / duration) if median(computes) >= MIN_COMPUTING_SHARE else None


def check(view: QueryView) -> Iterator[Finding]:
    interval = view.trigger.interval or 0.0
    now = overhead(view)
    if (
        now is None
        or view.last is None
        or not harm.examined(view)
        or now.duration < max(MIN_SECONDS, OVER_RATIO * interval)
    ):
        return
    without = fixed(view) if now.share < MIN_OVERHEAD_SHARE else None
    if now.share < MIN_OVERHEAD_SHARE and (without is None or without.share < MIN_OVERHEAD_SHARE):
        return
    if _other_cause(view, now, without):
        return
    at = view.last.ended
    seconds, share = (now.seconds, now.share) if without is None else (without.seconds, without.share)
    promise = f"the trigger interval is {interval:g} s" if interval else "the next batch starts at once"
    yield Finding(
        f"{seconds:.1f} s of a batch of {now.duration:.1f} s are fixed cost, independent of its "
        f"{counted(now.rows, 'row')}; {promise}",
        Component("query", view.query, "query_planning" if now.planning >= 0.5 * now.seconds else "scheduling"),
        (
            *_proof(now, without, interval, at),
            Evidence("query_planning_seconds", now.planning, "seconds", "less", at),
            Evidence("rows_per_batch", now.rows, "rows", "more", at),
        ),
        (
            Remedy(
                f"set the trigger interval to {max(1.0, 2 * now.duration):.0f} s if results may be that old",
                "fewer, larger batches spend less time on the fixed cost",
            ),
            Remedy("do not add cores to fix this", "planning, compiling and scheduling take as long on any number"),
        ),
        confidence=min(0.9, 0.4 + 0.5 * share),
        began=view.baseline.recent_since,
        share=min(1.0, share),
    )


def _proof(now: Overhead, without: Fixed | None, interval: float, at: float) -> tuple[Evidence, ...]:
    """The time that a batch would take without any row, where that is known; else the time outside tasks."""
    if without is not None:
        return (
            Evidence("seconds_without_rows", without.seconds, "seconds", f"<= {interval:g}", at),
            Evidence("without_rows_share", without.share, "ratio", f"< {MIN_OVERHEAD_SHARE:g}", at),
        )
    return (
        Evidence("overhead_seconds", now.seconds, "seconds", f"<= {interval:g}", at),
        Evidence("overhead_share", now.share, "ratio", f"< {MIN_OVERHEAD_SHARE:g}", at),
        Evidence("task_seconds", now.tasks, "seconds", f">= {(1 - MIN_OVERHEAD_SHARE) * now.duration:.1f}", at),
    )


def _other_cause(view: QueryView, now: Overhead, without: Fixed | None) -> bool:
    """Whether that time has a name of its own (sink, source, checkpoint, tiny tasks), or came with a fault.

    A sink that always takes long differs from planning by the time after the last task, and by planning itself. Time
    that is the same for any number of rows, by tasks that compute, is fixed cost on a busy machine, too.
    """
    before = _overhead(view, batch_time.usual_pairs(view))
    if before is not None and now.seconds >= MIN_SLOWDOWN * before.seconds:
        return True
    busy = starvation.machine_busy(view) if without is None else starvation.starved(view)
    if now.planning < batch_time.MIN_MAIN_SHARE * now.duration and busy:
        return True
    waste = task_skew.wasted(view) if now.planning < batch_time.MIN_PART_SHARE * now.duration else None
    if waste is not None and (without is None or waste.seconds >= batch_time.MIN_PART_SHARE * waste.duration):
        return True
    named = (checkpoint_slow.check, slow_source.check, too_many_tasks.check)
    return any(next(rule(view), None) is not None for rule in named)


def acquit(view: QueryView) -> str | None:
    now = overhead(view)
    if now is None or now.share >= MIN_OVERHEAD_SHARE:
        return None
    return f"the tasks alone need {now.tasks:.1f} s of a batch of {now.duration:.1f} s"


RULE = Rule("small-batch-overhead", "warning", check, __doc__, ("trigger-overrun",), acquit, needs_harm=True)
