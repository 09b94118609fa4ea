"""Scheduler skew: one executor does most of the work while others are idle.

Meaning: the tasks of a stage are not spread over all executors. Most often they wait for the executor that has their
    state store or their cached data (locality). After an executor was lost, all state is on the others, and it stays
    there when a new executor has started.
Impact: batches take as long as the busiest executor needs, while the cores of the others are idle.
Diagnosis: 1. Compare `sum by (executor) (rate(ledgerops_executor_tasks_total{app="APP"}[5m]))` with
    `ledgerops_executor_cores{app="APP"}`. If tasks are in proportion to cores, they are spread evenly: see `straggler`.
    2. In the Spark UI, open the stage and read the column "Locality Level" of its tasks. PROCESS_LOCAL for nearly all
    of them means that they wait for their data.
    3. In "Aggregated Metrics by Executor" compare the time for each task. If the busiest executor has fast tasks,
    locality is the cause; if it has slow ones, see `straggler`. An executor that is being decommissioned gets no tasks
    either: the log of the cluster manager tells it at once, Spark only when the executor has left.
Mitigation: restart the query from its checkpoint: a new run spreads its state over all executors. For a query without
    state, or with a small one, set `spark.locality.wait` to 0s. Do not add executors: the existing ones are idle.
"""

from collections import Counter

from ledgerops.diagnosis.cause import Cause, Told
from ledgerops.diagnosis.profile import Profile
from ledgerops.metrics.first_steps import GENERAL, first_step
from ledgerops.model.finding import Component, Remedy, Setting
from ledgerops.signals.query_view import QueryView

LOOK = first_step("scheduler-skew", GENERAL, "one that has cores and gets no tasks is where to look")
AGAIN = Remedy(
    "start the query again from its checkpoint", "a new run spreads the state stores over all executors", safe=False
)
NO_WAIT = Remedy(
    "set spark.locality.wait to 0s",
    "tasks then take any free core instead of waiting for the executor with their data",
    safe=False,
    settings=(Setting("spark.locality.wait", "0s"),),
)
NO_USE = Remedy("do not add executors to fix this", "the existing ones are idle")


def _tell(view: QueryView, found: Profile) -> Told:
    """Names the executor with most tasks of the uneven stages, and its share of them."""
    tasks, cores = Counter[str](), found.splits[-1].cores
    for split in found.splits:
        stage = split.worst("uneven_executors")
        if stage is not None:
            tasks.update({name: share.tasks for name, share in stage.executors.items()})
            cores = split.cores
    [(name, count)] = tasks.most_common(1) or [("unknown", 0)]
    share, even = count / max(1, tasks.total()), cores.get(name, 0) / max(1, sum(cores.values()))
    return Told(
        Component("executor", name),
        (LOOK, AGAIN if view.run.stateful else NO_WAIT, NO_USE),
        {"who": f"executor {name} runs {share:.0%} of the tasks with {even:.0%} of the cores"},
    )


CAUSE = Cause(
    slug="scheduler-skew",
    runbook=__doc__,
    parts=("uneven_executors",),
    min_share=0.2,  # it is measured task by task, and nothing else takes it
    happened="{who}, which costs {seconds} of a batch of {batch}",
    tell=_tell,
)
