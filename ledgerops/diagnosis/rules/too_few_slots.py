"""Too few slots: a real-time query has more tasks than the application has cores.

Meaning: in this mode all tasks of a query run at once and until the next checkpoint, one for each source partition
    and, with a shuffle, each shuffle partition. A task without a core does not start before another one ends.
Impact: the partitions of the waiting tasks are not read at all for that time (five minutes by default), or, where a
    task of a later stage waits, nothing comes out. Spark reports no error.
Diagnosis: 1. Compare the tasks that the finding names with `sum(ledgerops_executor_cores{app="APP"})`.
    2. In the Spark UI, open the running job: tasks that wait have no executor.
    3. If other queries of the driver hold cores, even fewer are left than the finding says.
Mitigation: start the application with a core for each task, and some for other queries. Or read fewer partitions, and
    set fewer shuffle partitions (with state, that takes a new checkpoint).
Evidence:
    tasks_left: tasks - tasks_done of the newest batch_running record of the run
    task_slots: totalCores of the active executors in the newest sample that has any
"""

from collections.abc import Iterator

from ledgerops.common.format import counted
from ledgerops.diagnosis.rule import CLEAR, Rule
from ledgerops.metrics.first_steps import GENERAL, first_step
from ledgerops.model.finding import CORES, Component, Evidence, Finding, Setting
from ledgerops.model.records import REAL_TIME
from ledgerops.signals.query_view import QueryView


def check(view: QueryView) -> Iterator[Finding]:
    running, slots = view.history.running, view.cluster.cores
    if view.plan.trigger != REAL_TIME or running is None or running.tasks is None or slots is None:
        return
    tasks = running.tasks - (running.tasks_done or 0)
    if tasks <= slots:
        return
    why = "a task of this mode keeps its core until the next checkpoint"
    cores = Setting(CORES, tasks)
    yield Finding(
        f"all {counted(tasks, 'task')} of the query must run at once, and the application has "
        f"{counted(slots, 'core')}: {tasks - slots} wait until the next checkpoint",
        Component("query", view.query, "tasks"),
        (
            Evidence("tasks_left", float(tasks), "count", f"<= {slots}", running.at),
            Evidence("task_slots", float(slots), "count", f">= {tasks}", running.at),
        ),
        (first_step("too-few-slots", GENERAL, why, cores=counted(tasks, "core"), settings=(cores,)),),
        confidence=CLEAR,
        began=running.since,
    )


RULE = Rule("too-few-slots", "warning", check, __doc__, ("freshness-breach", "trigger-overrun", "query-stuck"))
