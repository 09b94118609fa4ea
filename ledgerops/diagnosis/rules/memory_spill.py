"""Memory spill: tasks run out of execution memory and sort or aggregate on disk.

Meaning: the rows that a sort, an aggregation or a join holds at once do not fit into the task's share of the execution
    memory. Spark writes them to local disk and reads them back, some of them several times.
Impact: a stage takes many times as long as in memory, and the query falls behind when the batches of a peak spill.
Diagnosis: 1. In the Spark UI open the longest stage and read "Spill (Memory)" and "Spill (Disk)" by task. If only one
    task spills, see `key-skew`; if all of them do, memory is too small for the rows of a batch.
    2. `rate(ledgerops_batch_phase_seconds_total{query="QUERY",phase="add_batch"}[5m])` shows the time in tasks and the
    sink. If other phases take longer, spilling is not what makes the batch slow.
    3. `sum(rate(ledgerops_input_rows_total{query="QUERY"}[5m]))` shows the load. If it rose before the spill began,
    limit the rows of a batch; if it did not, the plan or the memory settings changed.
Mitigation: limit the rows of a batch (`maxOffsetsPerTrigger`): smaller batches spill less, and the backlog then waits
    in the source. At the next restart give each task more memory: fewer cores per executor, more
    `spark.executor.memory`, a larger `spark.memory.fraction`. More shuffle partitions make each task smaller; for a
    stateful query the checkpoint fixes their number.
Evidence:
    spilled_bytes: median of memoryBytesSpilled + diskBytesSpilled of all stages, over the newest 3 batches whose tasks
        are known (among the last ten, without the first of the run). Source: REST /stages; records `tasks`: spill_bytes
    spilling_stages_share: median over the same batches of the wall time of the stages that spilled, divided by the
        batch duration
"""

from collections.abc import Iterator
from statistics import median
from typing import NamedTuple

from ledgerops.diagnosis import batch_time, harm, state_cost
from ledgerops.diagnosis.rule import Rule
from ledgerops.model.finding import Component, Evidence, Finding, Remedy
from ledgerops.model.records import Progress, StageSummary, TaskSummary
from ledgerops.signals.memo import once
from ledgerops.signals.query_view import QueryView

MIN_BYTES = 16 * 2**20  # per batch: less is written and read in a moment
MIN_SPILLING_SHARE = 0.3  # of the batch in stages that spill: below it they do not make it long
# CPU time as a share of the spilling stages' run time: below it the tasks wait for something other than a local disk
MIN_COMPUTING_SHARE = 0.3


class Spill(NamedTuple):
    """Of one batch."""

    size: int  # bytes, in memory and on disk
    share: float  # of the batch, in stages that spilled
    stage: StageSummary  # the one that spilled most


@once
def _spills(view: QueryView) -> list[Spill]:
    """Of the newest batches whose tasks are known, as many as must agree; empty when one did not spill."""
    found = []
    for batch, tasks in state_cost.newest_with_tasks(view):
        spill = _spill(batch, tasks)
        if spill is None:
            return []
        found.append(spill)
    return found if len(found) >= batch_time.MIN_PAIRS else []


def _spill(batch: Progress, tasks: TaskSummary) -> Spill | None:
    stages = [stage for stage in tasks.stages if stage.spill_bytes > 0]
    size = sum(stage.spill_bytes for stage in stages)
    if size < MIN_BYTES or batch.duration <= 0:
        return None
    wall = sum(stage.wall_seconds or 0.0 for stage in stages)
    return Spill(size, min(1.0, wall / batch.duration), max(stages, key=lambda stage: stage.spill_bytes))


def check(view: QueryView) -> Iterator[Finding]:
    if view.last is None or not harm.examined(view):
        return
    spills = _spills(view)
    if not spills:
        return
    share = median(spill.share for spill in spills)
    stage = spills[0].stage
    if share < MIN_SPILLING_SHARE or stage.cpu_seconds + stage.gc_seconds < MIN_COMPUTING_SHARE * stage.run_seconds:
        return
    size = median(spill.size for spill in spills)
    newest = state_cost.newest_with_tasks(view)[0][0]
    yield Finding(
        f"tasks spill {size / 2**20:,.0f} MiB per batch, and the stages that spill take {share:.0%} of the batch time",
        Component("stage", stage.name.partition(" at ")[0] or f"stage {stage.stage_id}", f"stage {stage.stage_id}"),
        (
            Evidence("spilled_bytes", float(size), "bytes", "0", newest.ended),
            Evidence("spilling_stages_share", share, "ratio", f"< {MIN_SPILLING_SHARE:g}", newest.ended),
        ),
        _remedies(view),
        confidence=min(0.9, 0.5 + 0.4 * share),
        began=state_cost.newest_with_tasks(view)[len(spills) - 1][0].started,
    )


def _remedies(view: QueryView) -> tuple[Remedy, ...]:
    memory = Remedy(
        "give each task more memory: fewer cores an executor, more spark.executor.memory or spark.memory.fraction",
        "rows that fit into memory are not written to disk; this needs a restart",
        safe=False,
    )
    if view.run.stateful:
        return (memory,)
    return memory, Remedy(
        "raise spark.sql.shuffle.partitions and restart",
        "each task then holds fewer rows at once; this query has no state that fixes their number",
        safe=False,
    )


def acquit(view: QueryView) -> str | None:
    newest = state_cost.newest_with_tasks(view)
    if len(newest) < batch_time.MIN_PAIRS or any(stage.spill_bytes for _, tasks in newest for stage in tasks.stages):
        return None
    return f"no stage of the latest {len(newest)} sampled batches spilled"


RULE = Rule("memory-spill", "warning", check, __doc__, ("falling-behind", "trigger-overrun"), acquit, needs_harm=True)
