"""Python bound: Python workers take most of the run time of a batch's tasks.

Meaning: a user-defined function sends each row from the JVM to a Python worker and back. The tasks spend most of their
    time waiting for the Python workers and use little JVM CPU.
Impact: batches outlast the trigger interval. A faster JVM, more memory or a better plan does not help.
Diagnosis: 1. Check `rate(ledgerops_process_cpu_seconds_total{app="APP",kind="python_workers"}[5m])`. Near the number of
    cores, the functions compute; near zero, they wait, for example for a service that they call.
    2. In the Spark UI, page "SQL", the metric "time to run Python workers" of each Python node shows which function
    takes the time.
    3. `py-spy dump --pid PID` on one of the workers shows the line that it executes. A network call there means one
    request for each row.
Mitigation: if the function calls a service, check that service first. Then load models and connections once instead of
    for each row, and call services for many rows at once. Write the function in Spark SQL if possible, otherwise
    vectorise it (`pandas_udf`, or `udf(useArrow=True)`). More cores help as long as the source or the shuffle has more
    partitions than the query has cores; with fewer, divide the rows first: each task has one worker, on one core. Of
    state whose rows get larger keep only what the result needs: the function gets each of them whole.
"""

from ledgerops.common.format import size
from ledgerops.diagnosis.cause import Cause, Told
from ledgerops.diagnosis.facts.contention import cpu_use
from ledgerops.diagnosis.facts.more_tasks import more_tasks, tasks_at_once
from ledgerops.diagnosis.facts.state_cost import is_function
from ledgerops.diagnosis.facts.state_room import larger_rows
from ledgerops.diagnosis.limits import MOSTLY
from ledgerops.diagnosis.profile import Profile
from ledgerops.metrics.first_steps import GENERAL, first_step
from ledgerops.model.finding import Component, Remedy
from ledgerops.signals.query_view import QueryView

LOOK = first_step("python-bound", GENERAL, "a few looks show the line that takes longest")
WAITS = first_step(
    "python-bound",
    "waits",
    "workers that use little CPU wait for a service; one call per row is slow on any number of cores",
)
STATE = first_step(
    "python-bound", "state", "the function gets these rows whole in each batch, however few rows the batch reads"
)
VECTORISE = Remedy(
    "load models and connections once for each worker; write the function in Spark SQL, or for many rows at once",
    "what a function does for each row or task again takes most of its time; pandas_udf takes many rows",
    safe=False,
)


def _workers_wait(view: QueryView, found: Profile, jvm_share: float) -> bool:
    """Whether they wait for something else than a core or their rows: what they compute, and their tasks in the JVM for
    `jvm_share` of their time, as many times as long as others make it, is too little for half of their time. Where
    cores are full, and by whom is not known, nothing tells."""
    use, at_once, held = cpu_use(view), tasks_at_once(view), found.contention
    if use is None or at_once is None or (use.full and held is None):
        return False
    stretch = held.task_stretch if held is not None else 1.0
    return stretch * (use.cores_by.get("python_workers", 0.0) + jvm_share * at_once) < MOSTLY * at_once


def _tell(view: QueryView, found: Profile) -> Told | None:
    stages = [each.stage for split in found.splits for each in split.stages]
    ran = sum(stage.run_seconds for stage in stages)
    jvm_share = sum(stage.cpu_seconds for stage in stages) / ran if ran > 0 else 1.0
    if jvm_share >= MOSTLY:
        return None  # the JVM itself computes
    waits, at_once = _workers_wait(view, found, jvm_share), tasks_at_once(view)
    divide = waits or (at_once is not None and at_once < (view.cluster.cores or 0))
    then = more_tasks(view, found.duration, waits) if divide and view.trigger.interval else VECTORISE
    # behind `foreachBatch` Spark does not tell the time of the plan's Python workers
    tasks = [view.history.tasks_of(each.batch) for each in found.splits]
    told = any(each is not None and each.python_seconds is not None for each in tasks)
    who = "Python workers take" if told else "tasks wait, probably for the plan's Python functions, for"
    larger = larger_rows(view)
    grew, look = "", WAITS if waits else LOOK
    if larger is not None and is_function(larger.operator):
        grew = f"; each row of their state grew from {size(larger.before)} to {size(larger.now)}"
        look, then = STATE, look
    return Told(Component("stage", "Python workers"), (look, then), {"who": who, "state": grew})


CAUSE = Cause(
    slug="python-bound",
    runbook=__doc__,
    parts=("python",),
    min_share=0.45,  # a Python source that only passes rows on has less
    happened="{who} {seconds} of a batch of {batch}{state}",
    tell=_tell,
)
