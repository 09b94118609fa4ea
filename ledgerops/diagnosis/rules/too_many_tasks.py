"""Too many tasks: a batch has so many tiny tasks that starting them takes longer than their work.

Meaning: each shuffle partition and each source partition is a task, however few rows it has. Starting and ending a task
    takes some milliseconds; a task with state also loads and commits its store. With far more tasks than cores, this
    overhead takes most of the batch.
Impact: batches outlast the trigger interval at low load, and more rows would hardly make them longer.
Diagnosis: 1. `sum(rate(ledgerops_executor_tasks_total[5m]))` divided by
    `sum(rate(ledgerops_batches_total{query="QUERY"}[5m]))` is the number of tasks per batch. Two or three for each core
    (`sum(ledgerops_executor_cores)`) are enough; ten or more are too many.
    2. `ledgerops_state_partitions{query="QUERY"}` is the number of partitions of the state. If it explains the tasks,
    the checkpoint fixes them; if the query has no state, `spark.sql.shuffle.partitions` does.
    3. In the Spark UI, page "Stages", check which stage has the tasks. If it reads the source, the partitions of the
    source or `minPartitions` are the cause.
Mitigation: for a query without state, lower `spark.sql.shuffle.partitions` and restart the query. If the tasks read the
    source, reduce its partitions or `minPartitions`. A stateful query needs a new checkpoint with the lower number, or
    its state repartitioned offline (`ledgerops state` shows what it holds).
Evidence:
    tasks: median over P of the number of tasks of the stages with tiny tasks. P = the newest 5 batches whose tasks were
        read, without the first batch of the run; if 2 or more in a row up to now take longer than 1.1 times the
        interval, only those. Tiny = at least 10 tasks per core, median task time at most 0.25 s, fewer than 500 records
        per task
    tasks_per_core: tasks divided by the cores of all active executors in the newest sample of the host
    task_seconds_median: median over P of seconds_median of the largest of those stages
    records_per_task: median over P of the records divided by the tasks of those stages
    tiny_task_stage_seconds: median over P of the summed wall time of those stages, at most the batch duration
"""

from collections.abc import Iterator
from statistics import median
from typing import NamedTuple

from ledgerops.common.format import counted
from ledgerops.diagnosis import batch_time, harm, starvation
from ledgerops.diagnosis.rule import Rule
from ledgerops.model.finding import Component, Evidence, Finding, Remedy
from ledgerops.signals.memo import once
from ledgerops.signals.query_view import QueryView

MIN_TASKS_PER_CORE = 10  # Spark's tuning guide recommends 2 to 3
# Spark's tuning guide still calls tasks of 0.2 s efficient; here a task may also commit a state store
MAX_TINY_SECONDS = 0.25
MAX_TINY_RECORDS = 500  # per task; with more the work is in the rows
MIN_BLATANT_TASKS_PER_CORE = 50  # so many tasks, with fewer than
MAX_BLATANT_RECORDS = 10.0  # records each are too many, whatever the machine does
MIN_STAGE_SHARE = 0.5  # of the batch


class Tiny(NamedTuple):
    """Stages of many tiny tasks in a batch, by medians. Times are seconds."""

    tasks: float  # in these stages
    seconds: float  # of one task
    records: float  # of one task
    wall: float  # of these stages
    duration: float  # of the batch
    source: float  # tasks that read the source


@once
def tiny_tasks(view: QueryView) -> Tiny | None:
    """Medians over the newest batches whose tasks are known; None when the cores are not known or tasks are few."""
    cores = view.cluster.cores or 0
    if cores <= 0:
        return None
    found = []
    for batch, tasks in batch_time.pairs(view):
        stages = [
            stage
            for stage in tasks.stages
            if stage.tasks >= MIN_TASKS_PER_CORE * cores
            and stage.seconds_median <= MAX_TINY_SECONDS
            and stage.records < MAX_TINY_RECORDS * stage.tasks
            and stage.wall_seconds is not None
        ]
        if stages:
            count, widest = sum(stage.tasks for stage in stages), max(stages, key=lambda stage: stage.tasks)
            wall = min(batch.duration, sum(stage.wall_seconds or 0.0 for stage in stages))
            reading = sum(stage.tasks for stage in stages if not stage.reads_shuffle)
            records = sum(stage.records for stage in stages) / count
            found.append(Tiny(count, widest.seconds_median, records, wall, batch.duration, reading))
    if len(found) < max(batch_time.needed(view), 0.6 * len(batch_time.pairs(view))):
        return None
    return Tiny(*(median(each) for each in zip(*found, strict=True)))


def check(view: QueryView) -> Iterator[Finding]:
    if view.last is None or not harm.examined(view):
        return
    tiny = tiny_tasks(view)
    if tiny is None or tiny.wall < MIN_STAGE_SHARE * tiny.duration:
        return
    cores = view.cluster.cores or 0
    # tasks without number always look as if they took every slot; with next to nothing to do in each, no lack of cores
    # explains that there are so many
    blatant = tiny.tasks >= MIN_BLATANT_TASKS_PER_CORE * cores and tiny.records < MAX_BLATANT_RECORDS
    if not blatant and starvation.starved(view):
        return
    at = view.last.ended
    yield Finding(
        f"{tiny.tasks:,.0f} tasks on {counted(cores, 'core')} take {tiny.wall:.1f} s of a batch of "
        f"{tiny.duration:.1f} s, with {counted(tiny.records, 'record')} and {tiny.seconds * 1000:.0f} ms each",
        Component("stage", "tasks of the source" if tiny.source > tiny.tasks / 2 else "shuffle"),
        (
            Evidence("tasks", tiny.tasks, "count", f"<= {3 * cores}", at),
            Evidence("tasks_per_core", tiny.tasks / cores, "ratio", f"< {MIN_TASKS_PER_CORE}", at),
            Evidence("task_seconds_median", tiny.seconds, "seconds", f"> {MAX_TINY_SECONDS:g}", at),
            Evidence("records_per_task", tiny.records, "rows", f">= {MAX_TINY_RECORDS}", at),
            Evidence("tiny_task_stage_seconds", tiny.wall, "seconds", f"< {MIN_STAGE_SHARE * tiny.duration:.1f}", at),
        ),
        (_remedy(view, tiny, cores),),
        confidence=min(0.95, 0.5 + 0.3 * tiny.wall / tiny.duration + 0.005 * tiny.tasks / cores),
        began=view.baseline.recent_since,
        share=min(1.0, tiny.wall / tiny.duration),
    )


def _remedy(view: QueryView, tiny: Tiny, cores: int) -> Remedy:
    few = f"{2 * cores} to {3 * cores}"
    if tiny.source > tiny.tasks / 2:
        return Remedy(
            f"read the source in {few} partitions", "each of its partitions is a task, however few rows it has"
        )
    if view.run.stateful:
        return Remedy(
            f"start with a new checkpoint and spark.sql.shuffle.partitions={3 * cores}, or repartition the state",
            "the checkpoint fixes the shuffle partitions of a stateful query: the setting alone changes nothing",
            safe=False,
        )
    return Remedy(
        f"set spark.sql.shuffle.partitions to {few} and start the query again",
        "two or three tasks per core keep all cores busy",
    )


def acquit(view: QueryView) -> str | None:
    known = batch_time.pairs(view)
    if len(known) < batch_time.MIN_PAIRS:
        return None
    return f"a batch has {counted(median(sum(stage.tasks for stage in tasks.stages) for _, tasks in known), 'task')}"


RULE = Rule(
    "too-many-tasks",
    "warning",
    check,
    __doc__,
    ("falling-behind", "trigger-overrun", "small-batch-overhead", "state-commit-slow"),  # each saves a state of its own
    acquit,
    needs_harm=True,
)
