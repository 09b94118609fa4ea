"""Task retries: tasks fail and are run again, which takes most of each batch.

Meaning: an attempt of a task ended with an exception, and Spark ran the task again from its first row. The batch waits
    for that, and nothing fails as long as one of the attempts of each task ends well (`spark.task.maxFailures`, 4 by
    default). Usual reasons are a service that refuses some calls, a time limit, too little memory, and a bad machine.
Impact: batches take longer, rows are processed more than once (a `foreach` writer or a function with side effects sees
    them again), and a fourth failure of one task ends the query. While nothing is late for it, it is told as info from
    the second such batch on.
Diagnosis: 1. Read the exception in the finding. It is the newest one of the failed tasks.
    2. `sum by (executor) (rate(ledgerops_executor_failed_tasks_total{app="APP"}[5m]))` shows where they fail. If it is
    one executor, its machine is the cause: disk, network, or a library that is missing there.
    3. On all executors it is the function, the sink or the source. In the Spark UI, page Stages, failed tasks, see
    whether it is always the same partition: then its rows are the cause.
Mitigation: remove what the exception names. If a service refuses some calls, catch that in the function and repeat the
    call there, with a time limit: the task then repeats one call instead of all its rows.
"""

from collections.abc import Iterator
from itertools import islice

from ledgerops.common.format import counted
from ledgerops.diagnosis.cause import Cause, Told
from ledgerops.diagnosis.facts.exception_text import first_line, user_code
from ledgerops.diagnosis.limits import MIN_BATCHES, SHOWN_BATCHES
from ledgerops.diagnosis.profile import Profile
from ledgerops.diagnosis.rule import CLEAR, LATE
from ledgerops.metrics.first_steps import GENERAL, first_step
from ledgerops.model.finding import Component, Evidence, Finding, Remedy
from ledgerops.model.records import StageSummary
from ledgerops.signals.query_view import QueryView

LOOK = first_step("task-retries", GENERAL, "a task that fails does all its rows again; a fourth failure ends the query")
CATCH = Remedy(
    "catch the exception of a single call in the function, and repeat the call there",
    "then the task goes on with its other rows",
    safe=False,
)


def _tell(view: QueryView, found: Profile) -> Told:
    """Names the stage of the newest batches that lost most to attempts that failed."""
    splits = [each for split in found.splits for each in split.stages]
    worst = max((each for each in splits if each.retries), key=lambda each: each.retries, default=None)
    stage, failed = worst.stage if worst is not None else None, sum(each.stage.failed_tasks for each in splits)
    return Told(
        _component(stage),
        (LOOK, CATCH),
        {
            "tasks": f"{counted(failed, 'task')} in {counted(len(found.splits), 'batch', 'batches')}",
            "exception": _exception(stage),
        },
        (Evidence("failed_tasks", float(failed), "count", "0", found.at),),
    )


def _early(view: QueryView) -> Iterator[Finding]:
    """Tasks that fail in several of the newest batches whose tasks were read, while the others make up for it."""
    read = islice(reversed(view.history.tasks), SHOWN_BATCHES)
    ids = {tasks.batch_id for tasks in read if any(stage.failed_tasks for stage in tasks.stages)}
    if len(ids) < MIN_BATCHES:
        return  # which is soon seen: it is asked at every batch
    looked = [(batch, view.history.tasks_of(batch)) for batch in reversed(view.batches) if batch.batch_id in ids]
    failing = [(batch, stage) for batch, tasks in looked if tasks for stage in tasks.stages if stage.failed_tasks]
    batches = sorted({batch.batch_id for batch, _ in failing})
    if len(batches) < MIN_BATCHES:
        return
    (last, stage), failed = failing[0], sum(stage.failed_tasks for _, stage in failing)
    yield Finding(
        f"tasks fail and are run again, {failed} in {len(batches)} batches so far: nothing is late for it yet, and a "
        f"task whose last attempt fails ends the query: {_exception(stage)}",
        _component(stage),
        (Evidence("failed_tasks", float(failed), "count", "0", last.ended),),
        (LOOK, CATCH),
        confidence=CLEAR,
        began=failing[-1][0].started,
        batches=tuple(batches),
    )


def _component(stage: StageSummary | None) -> Component:
    return Component("stage", (stage.name if stage is not None else "") or "stage")


def _exception(stage: StageSummary | None) -> str:
    exception = stage.failure if stage is not None and stage.failure is not None else "no exception is known"
    code = user_code(exception)
    return first_line(exception) + (f", at {code}" if code else "")


CAUSE = Cause(
    slug="task-retries",
    runbook=__doc__,
    parts=("retries",),
    happened="{seconds} of a batch of {batch} go to tasks that fail and are run again ({tasks}): {exception}",
    explains=(*LATE, "straggler"),  # the last attempt comes late, in a new worker
    formulas={"failed_tasks": "numFailedTasks of the stages of the batches that the finding names, together"},
    tell=_tell,
    early=_early,
)
