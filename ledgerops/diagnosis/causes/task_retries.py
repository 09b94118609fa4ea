"""Task retries: tasks fail and are run again, which takes most of each batch.

Meaning: an attempt of a task ended with an exception, and Spark ran the task again from its first row. The batch waits
    for that, and nothing fails as long as one of the attempts of each task ends well (`spark.task.maxFailures`, 4 by
    default). Usual reasons are a service that refuses some calls, a time limit, too little memory, and a bad machine.
Impact: batches take longer, rows are processed more than once (a `foreach` writer or a function with side effects sees
    them again), and a fourth failure of one task ends the query.
Diagnosis: 1. Read the exception in the finding. It is the newest one of the failed tasks.
    2. `sum by (executor) (rate(ledgerops_executor_failed_tasks_total{app="APP"}[5m]))` shows where they fail. If it is
    one executor, its machine is the cause: disk, network, or a library that is missing there.
    3. On all executors it is the function, the sink or the source. In the Spark UI, page Stages, failed tasks, see
    whether it is always the same partition: then its rows are the cause.
Mitigation: remove what the exception names. If a service refuses some calls, catch that in the function and repeat the
    call there, with a time limit: the task then repeats one call instead of all its rows.
"""

from collections.abc import Mapping

from ledgerops.common.format import counted
from ledgerops.diagnosis.cause import Cause
from ledgerops.diagnosis.facts.exception_text import first_line, user_code
from ledgerops.diagnosis.profile import Profile
from ledgerops.metrics.first_steps import GENERAL, first_step
from ledgerops.model.finding import Component, Evidence, Remedy
from ledgerops.model.records import StageSummary
from ledgerops.signals.query_view import QueryView


def _failing(found: Profile) -> StageSummary | None:
    """The stage of the newest batches that lost most to attempts that failed."""
    stages = [each for split in found.splits for each in split.stages if each.retries]
    return max(stages, key=lambda each: each.retries).stage if stages else None


def _failed_tasks(found: Profile) -> int:
    return sum(each.stage.failed_tasks for split in found.splits for each in split.stages)


def _details(view: QueryView, found: Profile) -> Mapping[str, str]:
    stage = _failing(found)
    exception = stage.failure if stage is not None and stage.failure is not None else "no exception is known"
    code = user_code(exception)
    return {
        "tasks": f"{counted(_failed_tasks(found), 'task')} in {counted(len(found.splits), 'batch', 'batches')}",
        "exception": first_line(exception) + (f", at {code}" if code else ""),
    }


def _component(view: QueryView, found: Profile) -> Component:
    stage = _failing(found)
    return Component("stage", (stage.name if stage is not None else "") or "stage")


CAUSE = Cause(
    slug="task-retries",
    runbook=__doc__,
    parts=("retries",),
    happened="{seconds} of a batch of {batch} go to tasks that fail and are run again ({tasks}): {exception}",
    component=_component,
    details=_details,
    explains=("falling-behind", "trigger-overrun", "straggler"),  # the last attempt comes late, in a new worker
    remedies=lambda view, found: (
        first_step(
            "task-retries", GENERAL, "a task that fails does all its rows again; a fourth failure ends the query"
        ),
        Remedy(
            "catch the exception of a single call in the function, and repeat the call there",
            "then the task goes on with its other rows",
            safe=False,
        ),
    ),
    more=lambda view, found: (Evidence("failed_tasks", float(_failed_tasks(found)), "count", "0", found.at),),
    formulas={"failed_tasks": "numFailedTasks of the stages of the batches that the finding names, together"},
)
