"""Small batch overhead: the fixed cost of each batch takes most of it.

Meaning: planning the query, compiling its code, starting its stages and writing the checkpoint take the same time for
    one row as for thousands. Here they take nearly the whole batch.
Impact: the query runs without a pause at a low load, and results are later than the interval suggests. It takes cores
    and driver time from other queries.
Diagnosis: 1. Compare `ledgerops_batch_overhead_seconds{app="APP",query="QUERY"}` with
    `ledgerops_trigger_interval_seconds{app="APP",query="QUERY"}`. If the overhead is smaller, the rows take the time:
    see `trigger-overrun`.
    2. `sum by (phase) (rate(ledgerops_batch_phase_seconds_total{app="APP",query="QUERY"}[5m]))` shows which cost it is.
    Much `query_planning` means a large plan; much `add_batch` with tasks that hardly run means many stages. If planning
    takes seconds, a thread dump of the driver meanwhile shows why: it may list the files of a table, or compute a
    constant, such as a costly pattern on a fixed text.
    3. Check `ledgerops_host_cpu_busy_ratio{app="APP"}`. Near 1, the driver itself waits for a core: see
    `cpu-saturated`.
Mitigation: set a longer trigger interval: fewer, larger batches have less fixed cost, and freshness hardly changes.
    Then simplify the plan: fewer columns, unions and joins, no list of many files. More cores do not help: the driver
    does this work. Where the finding names a line of the function of `foreachBatch`, look there first.
"""

from ledgerops.diagnosis.cause import Cause, Told
from ledgerops.diagnosis.facts.contention import FIXED_SECONDS
from ledgerops.diagnosis.facts.context import function_place
from ledgerops.diagnosis.facts.longer_interval import longer_interval
from ledgerops.diagnosis.limits import MIN_BATCHES, MOSTLY, VERY_FAR_TIMES, WORTH_SHARE
from ledgerops.diagnosis.profile import Profile
from ledgerops.metrics.first_steps import first_step
from ledgerops.model.finding import Component, Remedy
from ledgerops.signals.query_view import QueryView

PARTS = ("query_planning", "launch", "few_rows")
FIXED = (*PARTS, "driver_before")
COMPUTES = "before the first task the driver runs the function, for its own part or to plan what it writes"
PLANS = "a large plan, a listing of files or a value that the plan computes takes it; a longer interval only hides that"
NO_USE = Remedy("do not add cores to fix this", "planning and scheduling take as long on any number")


def _tell(view: QueryView, found: Profile) -> Told | None:
    """What passes in the driver before the first task may be a function's, and counts only as a part of most of the
    batch. A single batch pays for warm-up, and where the interval has room for a batch, it does no harm."""
    longer = longer_interval(view, found.duration)
    surely = found.now(*PARTS) >= WORTH_SHARE * found.duration
    if len(found.splits) < MIN_BATCHES or not (surely or found.now(*FIXED) >= MOSTLY * found.duration) or not longer:
        return None
    largest = max(FIXED, key=found.now)
    line = function_place(view, since=found.splits[0].batch.started) if largest == "driver_before" else None
    look = (first_step("slow-sink", "line", COMPUTES, line=line),) if line else ()
    if found.now("query_planning") > VERY_FAR_TIMES * FIXED_SECONDS:
        look = (first_step("small-batch-overhead", "planning", PLANS),)
    return Told(Component("query", view.query, largest), (*look, *longer, NO_USE))


CAUSE = Cause(
    slug="small-batch-overhead",
    runbook=__doc__,
    parts=PARTS,
    born=("driver_before",),
    min_share=WORTH_SHARE,
    happened="{seconds} of a batch of {batch} are its fixed cost: planning, and starting its tasks",
    explains=("trigger-overrun",),
    tell=_tell,
)
