"""Slow sink: a batch spends most of its time writing, not computing.

Meaning: the phase `add_batch` takes long, and the run time of Spark's tasks does not explain it. The time is spent in
    the driver while the sink writes (`foreachBatch`, a commit), or in writing tasks that wait instead of computing.
Impact: batches outlast the trigger interval and the query falls behind, although cores are free.
Diagnosis: 1. Compare `rate(ledgerops_batch_phase_seconds_total{query="QUERY",phase="add_batch"}[5m])` with the run time
    of the tasks, `sum(rate(ledgerops_executor_run_seconds_total[5m]))`. If the first is high and the second is low, the
    batch waits for the sink.
    2. Time one write by hand (`\\timing` in psql, `time hadoop fs -put`). If it is slow too, the target is the cause:
    check it for locks and rate limits.
    3. If one write is fast, the query makes too many of them: look for a row-by-row write, a new connection for each
    batch, or a write from the driver.
Mitigation: repair or scale the target, and stop other work that blocks it. Then write larger batches, from the
    executors rather than the driver, with a limited number of connections. More cores do not help while all tasks wait
    for the same target.
Evidence:
    add_batch_seconds_outside_tasks: median over P of durationMs.addBatch / 1000 minus the wall time in which at least
        one stage ran (union of [started, ended] of the stages), at least 0. P = the newest 5 batches whose tasks were
        read, without the first batch of the run; if 2 or more in a row up to now take longer than 1.1 times the
        interval, only those
    outside_tasks_share: that value divided by the median over P of durationMs.triggerExecution / 1000
    usual_seconds_outside_tasks: the first over the newest 5 usual batches with tasks. Usual = all batches of the run
        before the newest 4, without its first 10 s, with rows, and no longer than 1.1 times the interval. Without an
        interval, the newest ones that took 1.5 times as long for their rows as the median of these do not count
    writing_stage_seconds: ended - started of the last stage, in the batch of P whose writing_stage_cpu_share is the
        median. Batches in which run_seconds / min(tasks, cores of active executors) is below 0.6 of that do not count
    writing_stage_cpu_share: (cpu_seconds + gc_seconds + python_seconds of the batch) / run_seconds of that stage, at
        most 1
    add_batch_seconds: if no tasks are known: median of durationMs.addBatch / 1000 over the newest 3 batches of the run,
        without those of its first 10 s
    usual_add_batch_seconds: the same over the usual batches
"""

from collections.abc import Iterator
from statistics import median
from typing import NamedTuple

from ledgerops.diagnosis import batch_time, harm, sink_wait, starvation
from ledgerops.diagnosis.criteria import WORTH_SHARE
from ledgerops.diagnosis.rule import Rule
from ledgerops.model.finding import Component, Evidence, Finding, Remedy
from ledgerops.signals.query_view import QueryView

MIN_SECONDS = 1.0  # outside tasks; planning, scheduling and a file commit take up to that on a small machine


class Slow(NamedTuple):
    """One way in which a batch waits for the sink."""

    what: str  # of the summary, after the seconds
    seconds: float
    duration: float  # of the batch
    evidence: tuple[Evidence, ...]
    confidence: float
    excess: float  # seconds beyond the usual, where that is known


def check(view: QueryView) -> Iterator[Finding]:
    if view.last is None or not harm.examined(view):
        return
    at = view.last.ended
    slow = _outside(view, at) or _waiting(view, at) or _slower_than_usual(view, at)
    if slow is None:
        return
    sink = (view.plan.sink or view.last.sink).partition("[")[0] or "sink"
    yield Finding(
        f"{slow.seconds:.1f} s of a batch of {slow.duration:.1f} s {slow.what}",
        Component("sink", sink),
        slow.evidence,
        (
            Remedy(
                "time one write at the target of the sink", "more cores do not help while tasks wait for the target"
            ),
            Remedy("write larger batches from the executors", "each round trip from the driver blocks the whole batch"),
        ),
        confidence=slow.confidence,
        began=view.baseline.recent_since,
        share=min(1.0, slow.excess / slow.duration),
    )


def _outside(view: QueryView, at: float) -> Slow | None:
    outside = batch_time.outside_tasks(view)
    if outside is None or outside.seconds < MIN_SECONDS or not sink_wait.blocks(view, outside):
        return None
    usual = batch_time.usually_outside(view)
    before = usual.seconds if usual is not None else 0.0
    limit = batch_time.MIN_MAIN_SHARE
    if usual is not None:
        limit = min(limit, batch_time.MIN_PART_SHARE + before / outside.duration)
    if outside.share < limit:
        limit = WORTH_SHARE
    evidence = [
        Evidence("add_batch_seconds_outside_tasks", outside.seconds, "seconds", f"< {MIN_SECONDS:g}", at),
        Evidence("outside_tasks_share", outside.share, "ratio", f"< {limit:.2f}", at),
    ]
    if usual is not None:
        evidence.append(Evidence("usual_seconds_outside_tasks", before, "seconds", "the usual", at))
    grew = 0.1 if usual is not None and outside.seconds > batch_time.MIN_TIMES_USUAL * before else 0.0
    return Slow(
        "are spent in the sink while no task runs",
        outside.seconds,
        outside.duration,
        tuple(evidence),
        min(0.95, 0.6 + 0.3 * outside.share + grew),
        max(0.0, outside.seconds - before),
    )


def _waiting(view: QueryView, at: float) -> Slow | None:
    waiting = sink_wait.waiting_stage(view)
    if waiting is None or not sink_wait.waits(view, waiting):
        return None
    limit = f"< {batch_time.MIN_MAIN_SHARE * waiting.duration:.1f}"
    cpu_limit = f">= {batch_time.MAX_WAITING_CPU_SHARE:g}"
    return Slow(
        f"are spent in {waiting.stage}, which writes; its tasks compute for {waiting.cpu_share:.0%} of that time",
        waiting.seconds,
        waiting.duration,
        (
            Evidence("writing_stage_seconds", waiting.seconds, "seconds", limit, at),
            Evidence("writing_stage_cpu_share", waiting.cpu_share, "ratio", cpu_limit, at),
        ),
        0.7,
        waiting.seconds * (1 - waiting.cpu_share),
    )


def _slower_than_usual(view: QueryView, at: float) -> Slow | None:
    """Without tasks, or with more stages than were read: only add_batch got slower, at no more rows than usual."""
    usual, latest = view.baseline.usual, view.baseline.recent
    if batch_time.outside_tasks(view) is not None or not usual or starvation.machine_busy(view):
        return None
    before = median(batch.phases.get("add_batch", 0.0) for batch in usual)
    now = median(batch.phases.get("add_batch", 0.0) for batch in latest)
    others_before = median(batch.duration - batch.phases.get("add_batch", 0.0) for batch in usual)
    others = median(batch.duration - batch.phases.get("add_batch", 0.0) for batch in latest)
    duration = median(batch.duration for batch in latest)
    allowed = before * max(1.0, median(batch.rows for batch in latest) / median(batch.rows for batch in usual))
    if (
        before <= 0
        or now < batch_time.MIN_TIMES_USUAL * allowed
        or now - before < MIN_SECONDS
        or now < batch_time.MIN_MAIN_SHARE * duration
    ):
        return None
    if others_before > 0 and others > starvation.MAX_OTHERS_RATIO * others_before:
        return None
    return Slow(
        f"are spent in add_batch, which used to take {before:.1f} s for as many rows; no task times are available",
        now,
        duration,
        (
            Evidence("add_batch_seconds", now, "seconds", f"<= {batch_time.MIN_TIMES_USUAL * allowed:.1f}", at),
            Evidence("usual_add_batch_seconds", before, "seconds", "the usual", at),
        ),
        0.5,
        now - before,
    )


def acquit(view: QueryView) -> str | None:
    outside = batch_time.outside_tasks(view)
    if outside is None or outside.duration <= 0:
        return None
    spent = f"no task runs in {outside.seconds:.1f} s of a batch of {outside.duration:.1f} s"
    if outside.share >= batch_time.MIN_MAIN_SHARE:
        return f"{spent}, but other queries use the cores meanwhile" if starvation.machine_busy(view) else None
    return f"{spent} ({outside.share:.0%})"


RULE = Rule("slow-sink", "warning", check, __doc__, ("falling-behind", "trigger-overrun"), acquit, needs_harm=True)
