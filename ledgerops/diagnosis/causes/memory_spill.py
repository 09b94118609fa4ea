"""Memory spill: tasks run out of execution memory and sort or aggregate on disk.

Meaning: the rows that a sort, an aggregation or a join holds at once do not fit into the task's share of the execution
    memory. Spark writes them to local disk and reads them back, some of them several times.
Impact: a stage takes many times as long as in memory, and the query falls behind when the batches of a peak spill.
Diagnosis: 1. In the Spark UI open the longest stage and read "Spill (Memory)" and "Spill (Disk)" by task. If only one
    task spills, see `key-skew`; if all of them do, memory is too small for the rows of a batch.
    If the stage spills far more than it reads, a join or an `explode` makes many rows of each: page "SQL" shows how
    many, and a join by the wrong column, or by one that is not unique, makes far too many.
    2. `rate(ledgerops_batch_phase_seconds_total{app="APP",query="QUERY",phase="add_batch"}[5m])` shows the time in
    tasks and the sink. If other phases take longer, spilling is not what makes the batch slow.
    3. Divide `sum(ledgerops_executor_storage_memory_bytes{app="APP"})` by
    `sum(ledgerops_executor_storage_memory_max_bytes{app="APP"})`. From 0.4 on, persisted data holds the memory that
    tasks need: page "Storage" of the Spark UI names it.
    4. `sum(rate(ledgerops_input_rows_total{app="APP",query="QUERY"}[5m]))` shows the load. If it rose before the spill
    began, limit the rows of a batch; if it did not, the plan or the memory settings changed.
Mitigation: unpersist what is not needed. Otherwise limit the rows of a batch (`maxOffsetsPerTrigger`,
    `maxFilesPerTrigger`): smaller batches spill less, and the backlog then waits in the source. At the next restart
    give each task more memory: fewer cores per executor, more `spark.executor.memory`, a larger
    `spark.memory.fraction`. More shuffle partitions make each task smaller; for a stateful query, and before Spark 4.1
    for any, the checkpoint fixes their number.
"""

from statistics import median

from ledgerops.common.format import size
from ledgerops.diagnosis.cause import Cause, Told
from ledgerops.diagnosis.facts import persisted
from ledgerops.diagnosis.facts.context import keeps_shuffle_partitions
from ledgerops.diagnosis.limits import VERY_FAR_TIMES
from ledgerops.diagnosis.profile import Profile
from ledgerops.metrics.first_steps import GENERAL, first_step
from ledgerops.model.finding import Component, Evidence, Remedy
from ledgerops.model.records import StageSummary
from ledgerops.signals.query_view import QueryView

MEMORY = Remedy(
    "give each task more memory: fewer cores an executor, more spark.executor.memory or spark.memory.fraction",
    "rows that fit into memory are not written to disk; this needs a restart",
    safe=False,
)
MORE_TASKS = Remedy(
    "raise spark.sql.shuffle.partitions and restart",
    "each task then holds fewer rows at once; neither state nor checkpoint fixes their number",
    safe=False,
)
CACHE = first_step("memory-spill", "cache", "the memory that it holds is missing to the tasks, which write to disk")
LOOK = first_step("memory-spill", GENERAL, "only then does more memory for each task help")
MULTIPLIED = first_step("memory-spill", "multiplied", "tasks write to disk what is made of a row, not what is read")
MULTIPLIED_BYTES = 100_000  # spilled of each row that a stage reads, where that is far more than it reads


def _tell(view: QueryView, found: Profile) -> Told:
    stages = [[each.stage for each in split.stages] for split in found.splits]
    spilled = float(median(sum(stage.spill_bytes for stage in own) for own in stages))  # in memory and on disk
    worst = max((stage for own in stages for stage in own), key=lambda stage: stage.spill_bytes, default=None)
    component = Component("stage", (worst.name.partition(" at ")[0] if worst else "") or "stage that spills")
    more = Evidence("spilled_bytes", spilled, "bytes", "0", found.at)
    if worst is not None and _multiplies(worst):
        made = f", {size(worst.spill_bytes / worst.records)} for each row that is read"
        return Told(component, (MULTIPLIED, MEMORY), {"size": size(spilled), "why": made}, (more,))
    cached = persisted.persisted(view)
    if cached is None:
        fixed = view.run.stateful or keeps_shuffle_partitions(view)
        remedies = (LOOK, MEMORY) if fixed else (LOOK, MEMORY, MORE_TASKS)
        return Told(component, remedies, {"size": size(spilled), "why": ""}, (more,))
    return Told(component, (CACHE, MEMORY), {"size": size(spilled), "why": cached.clause}, (cached.evidence, more))


def _multiplies(stage: StageSummary) -> bool:
    """Whether a stage spills far more than it reads, by row and by byte: it makes many rows of each."""
    read = stage.input_bytes + stage.shuffle_read_bytes
    return 0 < stage.records < stage.spill_bytes / MULTIPLIED_BYTES and stage.spill_bytes > VERY_FAR_TIMES * read


CAUSE = Cause(
    slug="memory-spill",
    runbook=__doc__,
    parts=("spill",),
    happened="tasks spill {size} per batch{why}; {seconds} of a batch of {batch} pass in stages that do",
    formulas={
        "persisted_share_of_memory": persisted.FORMULA,
        "spilled_bytes": "median over the batches of the spill_bytes of their stages, in memory and on disk",
    },
    tell=_tell,
)
