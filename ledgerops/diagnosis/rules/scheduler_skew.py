"""Scheduler skew: one executor does most of the work while others are idle.

Meaning: the tasks of a stage are not spread over all executors. Most often they wait for the executor that has their
    state store or their cached data (locality). After an executor was lost, all state is on the others, and it stays
    there when a new executor has started.
Impact: batches take as long as the busiest executor needs, while the cores of the others are idle.
Diagnosis: 1. Compare `sum by (executor) (rate(ledgerops_executor_tasks_total[5m]))` with `ledgerops_executor_cores`. If
    tasks are in proportion to cores, they are spread evenly: see `straggler`.
    2. In the Spark UI, open the stage and read the column "Locality Level" of its tasks. PROCESS_LOCAL for nearly all
    of them means that they wait for their data.
    3. In "Aggregated Metrics by Executor" compare the time for each task. If the busiest executor has fast tasks,
    locality is the cause; if it has slow ones, see `straggler`.
Mitigation: restart the query from its checkpoint: a new run spreads its state over all executors. For a query without
    state, or with a small one, set `spark.locality.wait` to 0s. Do not add executors: the existing ones are idle.
Evidence:
    busiest_executor_task_share: tasks of the busiest executor divided by all tasks, over the stages of P with at least
        as many tasks as executors. The busiest has the largest sum of run_seconds per core. P = the newest 5 batches
        whose tasks were read, without the first batch of the run; if 2 or more in a row up to now take longer than 1.1
        times the interval, only those
    even_share: its cores divided by the cores of all active executors (not the driver), in the newest sample of the
        host
    busiest_executor_seconds: its run_seconds in these stages, divided by its cores and by the number of batches in P
    even_seconds: the run_seconds of all executors, divided by all their cores and by the number of batches in P
"""

from collections.abc import Iterator
from statistics import median

from ledgerops.diagnosis import batch_time, harm, task_skew
from ledgerops.diagnosis.rule import Rule
from ledgerops.model.finding import Component, Evidence, Finding, Remedy
from ledgerops.signals.query_view import QueryView

# tasks of an executor over an even share; Dr. Elephant calls 1.78 of the task time moderate, for a whole job
MIN_TIMES_EVEN_SHARE = 1.6
# the others' seconds per task over the busiest executor's: slow executors get fewer tasks, whatever the scheduler does
MAX_TASK_TIME_RATIO = 1.5
MIN_COST_SHARE = 0.2  # of the batch that it must cost
MIN_COST_SECONDS = 0.5
MIN_TASKS_PER_BATCH = 4  # fewer cannot be spread


def check(view: QueryView) -> Iterator[Finding]:
    if view.last is None or not harm.examined(view):
        return
    shares, batches = task_skew.executor_shares(view), len(batch_time.pairs(view))
    total = sum(share.tasks for share in shares)
    if len(shares) < 2 or batches < batch_time.MIN_PAIRS or total < MIN_TASKS_PER_BATCH * batches:
        return
    busiest, rest = shares[0], shares[1:]
    cores = sum(share.cores for share in shares)
    even, share = busiest.cores / cores, busiest.tasks / total
    seconds = busiest.run_seconds / busiest.cores / batches
    fair = sum(each.run_seconds for each in shares) / cores / batches
    duration = median(batch.duration for batch, _ in batch_time.pairs(view))
    if share < min(0.95, MIN_TIMES_EVEN_SHARE * even) or seconds - fair < max(
        MIN_COST_SECONDS, MIN_COST_SHARE * duration
    ):
        return
    tasks, ran = sum(each.tasks for each in rest), sum(each.run_seconds for each in rest)
    if busiest.task_seconds is not None and tasks and ran / tasks > MAX_TASK_TIME_RATIO * busiest.task_seconds:
        return
    at = view.last.ended
    yield Finding(
        f"executor {busiest.executor} runs {share:.0%} of the tasks with {even:.0%} of the cores: {seconds:.1f} s "
        f"per batch, and an even split would take {fair:.1f} s",
        Component("executor", busiest.executor),
        (
            Evidence(
                "busiest_executor_task_share", share, "ratio", f"< {min(0.95, MIN_TIMES_EVEN_SHARE * even):.2f}", at
            ),
            Evidence("even_share", even, "ratio", "the even share", at),
            Evidence("busiest_executor_seconds", seconds, "seconds", f"< {fair + MIN_COST_SECONDS:.1f}", at),
            Evidence("even_seconds", fair, "seconds", "the even split", at),
        ),
        (
            Remedy(
                "start the query again from its checkpoint" if view.run.stateful else "set spark.locality.wait to 0s",
                "a new run spreads the state stores over all executors"
                if view.run.stateful
                else "tasks then take any free core instead of waiting for the executor with their data",
                safe=False,
            ),
            Remedy("do not add executors to fix this", "the existing ones are idle"),
        ),
        confidence=min(0.95, 0.5 + 0.3 * share + 0.03 * batches),
        began=view.baseline.recent_since,
        share=min(1.0, (seconds - fair) / duration),
    )


def acquit(view: QueryView) -> str | None:
    shares = task_skew.executor_shares(view)
    total = sum(share.tasks for share in shares)
    if len(shares) < 2 or not total:
        return None
    return f"the busiest of {len(shares)} executors runs {shares[0].tasks / total:.0%} of the tasks"


RULE = Rule("scheduler-skew", "warning", check, __doc__, ("falling-behind", "trigger-overrun"), acquit, needs_harm=True)
