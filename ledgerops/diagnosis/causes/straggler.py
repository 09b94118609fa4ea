"""Straggler: one task, or all tasks of one executor, take far longer than the others without more data.

Meaning: a stage ends with its last task, so one slow task delays the whole batch. The amount of data is not the reason:
    the slow task has about as many records as the others. Usual reasons are a slow disk, a throttled or paused machine,
    a bad executor, or a row that is expensive to process.
Impact: batches take as long as their slowest task while the other cores wait.
Diagnosis: 1. Compare `ledgerops_skew_ratio{app="APP",query="QUERY",kind="task_time"}` with
    `ledgerops_skew_ratio{app="APP",query="QUERY",kind="task_records"}`. If both are high, the slow task has more
    records: see `key-skew`.
    2. Divide `rate(ledgerops_executor_run_seconds_total{app="APP"}[5m])` by
    `rate(ledgerops_executor_tasks_total{app="APP"}[5m])`: the time for a task by executor. If one executor is far above
    the rest, check its machine for CPU steal, disk latency and other processes.
    3. If executors are alike, check in the Spark UI whether it is always the same partition. If it is, inspect its rows
    for one that is expensive.
Mitigation: remove the slow machine (decommission the executor, exclude its node): Spark repeats its tasks elsewhere. If
    the rest of the cluster is healthy, `spark.speculation=true` runs a second copy of a slow task; do not use it with a
    sink that must not write twice.
"""

from ledgerops.common.format import duration
from ledgerops.diagnosis.batch_parts import makes_rows
from ledgerops.diagnosis.cause import Cause, Told
from ledgerops.diagnosis.facts.context import has_no_python
from ledgerops.diagnosis.profile import Profile
from ledgerops.metrics.first_steps import GENERAL, first_step
from ledgerops.model.finding import Component, Remedy, Setting
from ledgerops.model.records import StageSummary
from ledgerops.signals.query_view import QueryView

WHY = "a stage ends only with its slowest task"
SPECULATE = Remedy(
    "set spark.speculation=true at the next start",
    "Spark runs a second copy of a slow task elsewhere; unsafe if the sink must not write twice",
    safe=False,
    settings=(Setting("spark.speculation", "true"),),
)


def _slow_stages(found: Profile) -> list[StageSummary]:
    """The stage with the slow task of each batch that has one, by how long the others waited for it."""
    by_wait = sorted(found.splits, key=lambda split: split.seconds.get("uneven_task", 0.0))
    return [stage for split in by_wait if (stage := split.worst("uneven_task")) is not None]


def _executor(stages: list[StageSummary]) -> str | None:
    """The executor with the slowest tasks in each of the batches, if there are several and it is always the same."""
    names = set()
    for stage in stages:
        shares = {name: each.run_seconds / each.tasks for name, each in stage.executors.items() if each.tasks}
        names.add(max(shares, key=lambda name: shares[name]) if len(shares) > 1 else None)
    return names.pop() if len(names) == 1 else None


def _tell(view: QueryView, found: Profile) -> Told:
    stages = _slow_stages(found)  # one at least, or the part would be empty
    executor, stage = _executor(stages), stages[len(stages) // 2]
    which = f"task {stage.slowest_task}" if stage.slowest_task is not None else None
    where = f" on executor {executor}" if executor else ""
    others = (stage.run_seconds - stage.seconds_max) / max(1, stage.tasks - 1)
    # far more than it reads, as where one record explodes
    explodes = makes_rows(stage)
    makes = f"; it reads at most {stage.records_max:,.0f} and writes {stage.slowest_wrote or 0:,}" * explodes
    task, took, rest = which or "one task", duration(stage.seconds_max), duration(others)
    who = f"{task} of stage {stage.stage_id}{where} takes {took}, another {rest} for as many records{makes}"
    words = {"who": who}
    if executor is not None:
        step = first_step("straggler", "executor", WHY, executor=f"executor {executor}")
        return Told(Component("executor", executor), (step, SPECULATE), words)
    single = len([each for each in view.cluster.executors if each.cores]) == 1
    alone = "no Python" if has_no_python(view) else "one executor"
    context = "makes rows" if explodes else alone if single else GENERAL
    component = Component("stage", stage.name or "stage", which)
    return Told(component, (first_step("straggler", context, WHY),), words)


CAUSE = Cause(
    slug="straggler",
    runbook=__doc__,
    parts=("uneven_task",),
    happened="{who}: the others wait {seconds} of a batch of {batch}",
    tell=_tell,
)
