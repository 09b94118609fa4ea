"""Slow sink: a batch spends most of its time writing, not computing.

Meaning: the phase `add_batch` takes long, and the run time of Spark's tasks does not explain it. The time is spent in
    the driver while the sink writes (`foreachBatch`, a commit), or in writing tasks that wait instead of computing.
Impact: batches outlast the trigger interval and the query falls behind, although cores are free.
Diagnosis: 1. Compare `rate(ledgerops_batch_phase_seconds_total{app="APP",query="QUERY",phase="add_batch"}[5m])` with
    the run time of the application's tasks, `sum(rate(ledgerops_executor_run_seconds_total{app="APP"}[5m]))`. If the
    first is high and the second is low, the batch waits for the sink.
    2. Time one write by hand (`\\timing` in psql, `time hadoop fs -put`). If it is slow too, the target is the cause:
    check it for locks and rate limits.
    3. If one write is fast, the query makes too many of them: look for a row-by-row write, a new connection for each
    batch, or a write from the driver.
Mitigation: repair or scale the target, and stop other work that blocks it. Then write larger batches, from the
    executors rather than the driver, with a limited number of connections. More cores do not help while all tasks wait
    for the same target.
"""

from ledgerops.diagnosis.cause import Cause, Told
from ledgerops.diagnosis.facts.contention import cpu_use
from ledgerops.diagnosis.facts.context import (
    ANY,
    fitting,
    function_computes,
    function_place,
    sink_kind,
    sink_name,
    small_files,
)
from ledgerops.diagnosis.limits import MOSTLY
from ledgerops.diagnosis.profile import Profile, python_computes
from ledgerops.metrics.first_steps import first_step
from ledgerops.model.finding import Component, Remedy
from ledgerops.signals.query_view import QueryView

FIRST = {
    "small files": first_step(
        "slow-sink", "small files", "each task writes a file for each partition of the table for which it has rows"
    ),
    ANY: first_step("slow-sink", ANY, "more cores do not help while the write waits"),
    "sink kafka": first_step("slow-sink", "sink kafka", "a batch ends with its slowest send"),
    "sink table": first_step("slow-sink", "sink table", "a conflict makes it begin again"),
}
COMPUTES = "the driver's Python computes meanwhile, so it is the function and not the target"
NOT_KNOWN = "nothing recorded tells whether it computes or waits for its target"
OF_DRIVER = ("after_tasks", "driver_waits", "driver_before", "driver_between")
LARGER = Remedy("write larger batches from the executors", "each round trip from the driver blocks the whole batch")


def _holds(view: QueryView, found: Profile) -> bool:
    if sink_kind(view) == "none":
        return False  # it keeps nothing: what passes in the driver is something else
    unknown = found.parts.get("tasks_unknown")
    if found.knows_tasks or unknown is None:
        return True
    own_python = python_computes(view) and not view.others  # with other queries the workers may be theirs
    return unknown.excess >= MOSTLY * found.duration and not own_python


def _tasks(view: QueryView, found: Profile) -> str:
    """What tasks do meanwhile: where the cores are full, or that is not known, they may wait for one."""
    if not found.knows_tasks:
        return "; what its tasks do is not known"
    use, writes = cpu_use(view), found.now("sink_wait") > found.now(*OF_DRIVER)
    return ", or its tasks wait for a core" if writes and (use is None or use.full) else " while no task computes"


def _tell(view: QueryView, found: Profile) -> Told | None:
    if not _holds(view, found):
        return None
    computes, files = function_computes(view), small_files(view)
    line = function_place(view, since=found.splits[0].batch.started)
    where, steps = "the sink", [fitting(FIRST, view), LARGER]
    # the time passes in the function of `foreachBatch`, and nothing says that it waits for its target
    if computes or (computes is None and found.now(*OF_DRIVER) > found.now("sink_wait", "tasks_unknown")):
        where, why = "the function of foreachBatch", COMPUTES if computes else NOT_KNOWN
        steps = [first_step("slow-sink", "line" if line else "sink function", why, line=line or "")]
    words = {
        "place": f"{where} (mostly at {line})" if line else where,
        "tasks": _tasks(view, found),
        "files": f"; each batch adds {files.summary}: files bound the write, not rows" if files else "",
    }
    return Told(Component("sink", sink_name(view)), tuple(steps), words)


CAUSE = Cause(
    slug="slow-sink",
    runbook=__doc__,
    parts=("after_tasks", "sink_wait", "driver_waits"),
    grown=("driver_before", "driver_between", "tasks_unknown"),
    perhaps=("waiting",),
    happened="{seconds} of a batch of {batch} pass in {place}{tasks}{files}",
    tell=_tell,
)
