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

from collections.abc import Mapping

from ledgerops.common.format import duration
from ledgerops.diagnosis.batch_parts import FEW_RECORDS
from ledgerops.diagnosis.cause import Cause
from ledgerops.diagnosis.limits import FAR_TIMES
from ledgerops.diagnosis.profile import Profile
from ledgerops.metrics.first_steps import GENERAL, first_step
from ledgerops.model.finding import Component, Remedy, Setting
from ledgerops.model.records import StageSummary
from ledgerops.signals.query_view import QueryView


def _slow(found: Profile) -> StageSummary | None:
    """The stage with the slow task, of the batch in which the others waited for the median time."""
    by_wait = sorted(found.splits, key=lambda split: split.seconds.get("uneven_task", 0.0))
    stages = [stage for split in by_wait if (stage := split.worst("uneven_task")) is not None]
    return stages[len(stages) // 2] if stages else None


def _executor(view: QueryView, found: Profile) -> str | None:
    """The executor with the slowest tasks in each of the batches, if there are several and it is always the same."""
    names = set()
    for split in found.splits:
        stage = split.worst("uneven_task")
        shares = (
            {} if stage is None else {name: s.run_seconds / s.tasks for name, s in stage.executors.items() if s.tasks}
        )
        if shares:
            names.add(max(shares, key=lambda name: shares[name]) if len(shares) > 1 else None)
    return names.pop() if len(names) == 1 else None


def _component(view: QueryView, found: Profile) -> Component:
    executor, stage = _executor(view, found), _slow(found)
    if executor:
        return Component("executor", executor)
    which = f"task {stage.slowest_task}" if stage is not None and stage.slowest_task is not None else None
    return Component("stage", (stage.name if stage is not None else "") or "stage", which)


def _makes_rows(stage: StageSummary | None) -> bool:
    """Whether its slow task makes far more rows than it reads, as where one record explodes."""
    return stage is not None and (stage.slowest_wrote or 0) > max(FEW_RECORDS, FAR_TIMES * stage.records_max)


def _details(view: QueryView, found: Profile) -> Mapping[str, str]:
    stage, executor = _slow(found), _executor(view, found)
    if stage is None:
        return {"who": "one task"}
    which = f"task {stage.slowest_task}" if stage.slowest_task is not None else "one task"
    where = f" on executor {executor}" if executor else ""
    others = (stage.run_seconds - stage.seconds_max) / max(1, stage.tasks - 1)
    makes = f"; it reads at most {stage.records_max:,.0f} and writes {stage.slowest_wrote or 0:,}"
    return {
        "who": f"{which} of stage {stage.stage_id}{where} takes {duration(stage.seconds_max)}, another "
        f"{duration(others)} for as many records{makes if _makes_rows(stage) else ''}"
    }


def _remedies(view: QueryView, found: Profile) -> tuple[Remedy, ...]:
    executor, why = _executor(view, found), "a stage ends only with its slowest task"
    if executor is None and _makes_rows(_slow(found)):
        return (first_step("straggler", "makes rows", why),)
    if executor is None:
        single = len([each for each in view.cluster.executors if each.cores]) == 1
        return (first_step("straggler", "one executor" if single else GENERAL, why),)
    return (
        first_step("straggler", "executor", why, executor=f"executor {executor}"),
        Remedy(
            "set spark.speculation=true at the next start",
            "Spark runs a second copy of a slow task elsewhere; unsafe if the sink must not write twice",
            safe=False,
            settings=(Setting("spark.speculation", "true"),),
        ),
    )


CAUSE = Cause(
    slug="straggler",
    runbook=__doc__,
    parts=("uneven_task",),
    happened="{who}: the others wait {seconds} of a batch of {batch}",
    component=_component,
    details=_details,
    remedies=_remedies,
)
