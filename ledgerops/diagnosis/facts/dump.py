"""What to do about a batch that does not end: where to look, by what is known to hang."""

from ledgerops.diagnosis.facts.context import sink_kind
from ledgerops.diagnosis.facts.hang import moves
from ledgerops.diagnosis.facts.waiting import waiting
from ledgerops.metrics.first_steps import GENERAL, first_step
from ledgerops.model.finding import Remedy
from ledgerops.signals.query_view import QueryView

RESTART = Remedy(
    "stop the query and start it from its checkpoint", "the batch is repeated, and nothing is lost", safe=False
)


def steps(view: QueryView) -> tuple[Remedy, ...]:
    """What goes on ends by itself, and would do the same again. What hangs is looked at before a restart."""
    if moves(view):
        return (first_step("query-stuck", "going on", "started again, it has the same to do"),)
    return _dump(view), RESTART


def _dump(view: QueryView) -> Remedy:
    """A task, the function of `foreachBatch`, the driver, or how to find out which."""
    running, found = view.history.running, waiting(view)
    if found is not None and found.whom != "python":
        return first_step("query-stuck", found.whom, f"{found.words}; started again it may wait again")
    if running is None or running.tasks is None:
        return first_step(
            "query-stuck",
            GENERAL,
            "py-spy shows what a Python process waits for, jstack a JVM; a restart destroys it",
            command="py-spy dump --pid PID",
        )
    if running.tasks > (running.tasks_done or 0):
        processes = view.hosts[-1].processes if view.hosts else ()
        jvm = "PID_OF_THE_DRIVER" if view.cluster.is_local else "PID_OF_THE_EXECUTOR"
        in_python = found is not None or any(each.role == "python_workers" for each in processes)
        return first_step(
            "query-stuck",
            "tasks",
            "the dump shows what the task waits for; a restart destroys it",
            command="py-spy dump --pid PID_OF_THE_WORKER" if in_python else f"jstack {jvm}",
        )
    if sink_kind(view) == "foreach_batch":
        return first_step(
            "query-stuck",
            "sink function",
            "no task runs, so the batch waits for that function; a restart destroys what it shows",
            command="py-spy dump --pid PID_OF_THE_DRIVER",
        )
    return first_step(
        "query-stuck",
        "driver",
        "no task runs, so the batch waits for the driver; a restart destroys what the dump shows",
        command="jstack PID_OF_THE_DRIVER",
    )
