"""Straggler: one task, or all tasks of one executor, take far longer than the others without more data.

Meaning: a stage ends with its last task, so one slow task delays the whole batch. The amount of data is not the reason:
    the slow task has about as many records as the others. Usual reasons are a slow disk, a throttled or paused machine,
    a bad executor, or a row that is expensive to process.
Impact: batches take as long as their slowest task while the other cores wait.
Diagnosis: 1. Compare `ledgerops_skew_ratio{query="QUERY",kind="task_time"}` with
    `ledgerops_skew_ratio{query="QUERY",kind="task_records"}`. If both are high, the slow task has more records: see
    `key-skew`.
    2. `rate(ledgerops_executor_run_seconds_total[5m]) / rate(ledgerops_executor_tasks_total[5m])` is the time for a
    task by executor. If one executor is far above the rest, check its machine for CPU steal, disk latency and other
    processes.
    3. If executors are alike, check in the Spark UI whether it is always the same partition. If it is, inspect its rows
    for one that is expensive.
Mitigation: remove the slow machine (decommission the executor, exclude its node): Spark repeats its tasks elsewhere. If
    the rest of the cluster is healthy, `spark.speculation=true` runs a second copy of a slow task; do not use it with a
    sink that must not write twice.
Evidence:
    slowest_task_seconds: median over P of seconds_max of the stage that waited longest for one task. P = the newest 5
        batches whose tasks were read, without the first batch of the run; if 2 or more in a row up to now take longer
        than 1.1 times the interval, only those, and of them those with such a stage. The records of its largest task
        are at most 1.5 times the mean of the other tasks
    other_tasks_seconds: median over P of (run_seconds - seconds_max) / (tasks - 1) of those stages
    lost_seconds: median over P of min(seconds_max, wall time) minus the time of an even split, max(other, (run_seconds
        - seconds_max + other) / slots), with slots = min(tasks, cores of active executors)
    executor_task_seconds: for the slow executor, sum of run_seconds divided by the number of tasks, over the stages of
        P with at least as many tasks as executors
    other_executors_task_seconds: the same for all other executors together
"""

from collections.abc import Iterator, Sequence
from statistics import median

from ledgerops.diagnosis import batch_time, harm, starvation, task_skew
from ledgerops.diagnosis.rule import Rule
from ledgerops.model.finding import Component, Evidence, Finding, Remedy
from ledgerops.signals.query_view import QueryView

MIN_TIMES_OTHERS = 3.0  # Spark's own speculation uses 3 (spark.speculation.multiplier) from 4.0 on
MIN_EXECUTOR_RATIO = 2.0  # seconds per task over those of the other executors
MAX_RECORDS_RATIO = 1.5  # over the others' records
MIN_COST_SHARE = 0.25  # of the batch that it must cost
MIN_LOST_SECONDS = 0.5
MAX_ACQUITTED_RATIO = 2.0  # over the others: more is not yet a finding, but does not rule it out either
MIN_BATCHES = 2  # that must show it
MIN_EXECUTOR_TASKS = 4  # of an executor; fewer show nothing


def check(view: QueryView) -> Iterator[Finding]:
    if view.last is None or not harm.examined(view):
        return
    finding = _slow_executor(view) or _slow_task(view)
    if finding is not None:
        yield finding


def _slow_task(view: QueryView) -> Finding | None:
    slow = [
        each
        for each in task_skew.slowest_tasks(view, MAX_RECORDS_RATIO)
        if each.ratio >= MIN_TIMES_OTHERS and each.lost >= MIN_LOST_SECONDS
    ]
    if len(slow) < max(MIN_BATCHES, 0.6 * len(batch_time.pairs(view))) or view.last is None:
        return None
    lost, duration = median(each.lost for each in slow), median(each.duration for each in slow)
    if lost < MIN_COST_SHARE * duration or starvation.starved(view):
        return None
    newest = slow[0]
    seconds, others = median(each.seconds for each in slow), median(each.others for each in slow)
    executor = _executor(slow)
    which = f"task {newest.stage.slowest_task}" if newest.stage.slowest_task is not None else "one task"
    at = view.last.ended
    return Finding(
        f"{which} of stage {newest.stage.stage_id} takes {seconds:.1f} s, the others {others:.1f} s for the same "
        f"number of records{f', on executor {executor}' if executor else ''}",
        Component("executor", executor, which) if executor else Component("stage", newest.stage.name or "stage", which),
        (
            Evidence("slowest_task_seconds", seconds, "seconds", f"< {MIN_TIMES_OTHERS * others:.1f}", at),
            Evidence("other_tasks_seconds", others, "seconds", "the others", at),
            Evidence("lost_seconds", lost, "seconds", f"< {MIN_COST_SHARE * duration:.1f}", at),
        ),
        _remedies(executor),
        confidence=min(0.9, 0.5 + 0.1 * len(slow)),
        began=_began(view),
        share=min(1.0, lost / duration),
    )


def _executor(slow: Sequence[task_skew.Slowest]) -> str | None:
    """The executor with the slowest tasks in each of the stages, if there are several and it is always the same."""
    names = set()
    for each in slow:
        shares = {name: share.run_seconds / share.tasks for name, share in each.stage.executors.items() if share.tasks}
        names.add(max(shares, key=lambda name: shares[name]) if len(shares) > 1 else None)
    return names.pop() if len(names) == 1 else None


def _slow_executor(view: QueryView) -> Finding | None:
    """One executor whose tasks all take longer than those of the others, with no more records each."""
    shares = [share for share in task_skew.executor_shares(view) if share.tasks]
    known = [(share, share.task_seconds) for share in shares if share.task_seconds is not None]
    if len(known) < 2 or view.last is None:
        return None
    slow, seconds = max(known, key=lambda each: each[1])
    rest = [share for share in shares if share is not slow]
    tasks, ran = sum(share.tasks for share in rest), sum(share.run_seconds for share in rest)
    others = ran / tasks
    records = sum(share.records for share in rest) / tasks
    batches = len(batch_time.pairs(view))
    lost = (slow.run_seconds - slow.tasks * others) / slow.cores / max(1, batches)
    duration = median(batch.duration for batch, _ in batch_time.pairs(view))
    if (
        min(slow.tasks, tasks) < MIN_EXECUTOR_TASKS
        or seconds < MIN_EXECUTOR_RATIO * others
        or slow.records / slow.tasks > MAX_RECORDS_RATIO * max(1.0, records)
        or lost < max(MIN_LOST_SECONDS, MIN_COST_SHARE * duration)
    ):
        return None
    at = view.last.ended
    return Finding(
        f"a task takes {seconds:.2f} s on executor {slow.executor} and {others:.2f} s on the others "
        "for the same number of records",
        Component("executor", slow.executor),
        (
            Evidence("executor_task_seconds", seconds, "seconds", f"< {MIN_EXECUTOR_RATIO * others:.2f}", at),
            Evidence("other_executors_task_seconds", others, "seconds", "the others", at),
        ),
        _remedies(slow.executor),
        confidence=min(0.95, 0.5 + 0.1 * batches + 0.02 * slow.tasks),
        began=_began(view),
        share=min(1.0, lost / duration),
    )


def _began(view: QueryView) -> float | None:
    newest = view.baseline.recent
    return newest[0].started if newest else None


def _remedies(executor: str | None) -> tuple[Remedy, ...]:
    check_machine = Remedy(
        f"check the machine of executor {executor}, and remove it if it stays slow"
        if executor
        else "find out on which executor and for which partition it happens; remove a machine that is always slow",
        "a stage ends only with its slowest task",
    )
    speculate = Remedy(
        "set spark.speculation=true at the next start",
        "Spark runs a second copy of a slow task elsewhere; unsafe if the sink must not write twice",
        safe=False,
    )
    return check_machine, speculate


def acquit(view: QueryView) -> str | None:
    slow = task_skew.slowest_tasks(view, MAX_RECORDS_RATIO)
    if len(slow) < MIN_BATCHES:
        return None
    worst = sorted(slow, key=lambda each: each.ratio)[len(slow) // 2]
    if worst.ratio >= MAX_ACQUITTED_RATIO:
        return None
    return f"the slowest task of stage {worst.stage.stage_id} takes {worst.ratio:.1f} times as long as the others"


RULE = Rule("straggler", "warning", check, __doc__, ("falling-behind", "trigger-overrun"), acquit, needs_harm=True)
