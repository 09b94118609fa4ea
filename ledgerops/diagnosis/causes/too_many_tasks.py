"""Too many tasks: a batch has so many tiny tasks that starting them takes longer than their work.

Meaning: each shuffle partition and each source partition is a task, however few rows it has. Starting and ending a task
    takes some milliseconds; a task with state also loads and commits its store. With far more tasks than cores, this
    overhead takes most of the batch.
Impact: batches outlast the trigger interval at low load, and more rows would hardly make them longer.
Diagnosis: 1. `sum(rate(ledgerops_executor_tasks_total{app="APP"}[5m]))` divided by
    `sum(rate(ledgerops_batches_total{app="APP"}[5m]))` is the number of tasks per batch, over all queries of the
    application. Two or three for each core (`sum(ledgerops_executor_cores{app="APP"})`) are enough; ten or more are too
    many.
    2. `ledgerops_state_partitions{app="APP",query="QUERY"}` is the number of partitions of the state. If it explains
    the tasks, the checkpoint fixes them; if not, `spark.sql.shuffle.partitions` does, unless it is another number: then
    the query calls `repartition` with its own.
    3. In the Spark UI, page "Stages", check which stage has the tasks. If it reads the source, its partitions are
    the cause, or, of Kafka with more tasks than the topic has partitions, `minPartitions`. If it reads more rows
    than the batch has, or none of them, look in the code for a DataFrame that each batch makes longer (`union`),
    and for a table of many small files.
Mitigation: if the stage has exactly 50 tasks and the query reads or writes a Delta table, it reads the table's log:
    lower `spark.databricks.delta.snapshotPartitions`. With exactly 10,000 it lists the table's files, as for `VACUUM`:
    lower `spark.sql.sources.parallelPartitionDiscovery.parallelism`, and keep maintenance out of the batch. Where the
    query calls `repartition`, lower the number there. For a query without state, lower `spark.sql.shuffle.partitions`
    and restart the query; before Spark 4.1 the checkpoint keeps that number, too: `coalesce` after the join, or set it
    on the batch's session in the function of `foreachBatch`. If the tasks read the source, lower `minPartitions`, or
    `coalesce` right after reading. What grows by a `union` in each batch is written to a table instead, and small files
    are compacted. A stateful query with a checkpoint location needs a new one with the lower number, or, with RocksDB
    from Spark 4.2 on, its state repartitioned (`ledgerops state` shows what it holds).
"""

from functools import partial

from ledgerops.common.format import counted
from ledgerops.diagnosis.batch_parts import ENOUGH_TASKS_PER_CORE, reads_again
from ledgerops.diagnosis.cause import Cause, Told
from ledgerops.diagnosis.facts.context import keeps_shuffle_partitions, sink_kind, sink_name
from ledgerops.diagnosis.profile import Profile
from ledgerops.diagnosis.rule import LATE
from ledgerops.metrics.first_steps import GENERAL, first_step
from ledgerops.model.finding import REPARTITION, SHUFFLE, Component, Evidence, Remedy, Setting
from ledgerops.model.records import Progress, StageSummary
from ledgerops.signals.query_view import QueryView

# settings that give the tasks of Delta's own stages, and their defaults: reading the log of a table, and listing its
# files (VACUUM)
OF_DELTA = {
    "spark.databricks.delta.snapshotPartitions": 50,
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": 10_000,
}
COMPONENTS = {"again": "tasks beside the source", "": "shuffle"}  # others are of the source


def _of_read(batch: Progress, tiny: list[StageSummary], others: list[StageSummary]) -> str:
    """Where most of them read, without a shuffle, what they do: the source, partitions of it that an option splits, or
    what the batch reads beside it. Theirs are not the rows of its sources where `others` read all of these."""
    read = [stage for stage in tiny if not stage.reads_shuffle]
    tasks = sum(stage.tasks for stage in read)
    if tasks <= sum(stage.tasks for stage in tiny) / 2:
        return ""
    rows, told = sum(source.rows for source in batch.sources), sum(stage.records for stage in read)
    elsewhere = sum(stage.records for stage in others if not stage.reads_shuffle) >= rows
    if reads_again(batch, read) or (elsewhere and not told and all(source.rows for source in batch.sources)):
        return "again"
    partitions = sum(len(source.end) * source.times_read for source in batch.sources if source.kind == "kafka")
    return "split" if 0 < partitions < tasks else "source"


def _of_delta(view: QueryView, tasks: list[int]) -> str | None:
    """The setting of OF_DELTA that most of them have their number from, whatever the query sets; None for others."""
    tables = {source.kind for source in view.sources}
    in_function = view.plan.delta and sink_kind(view) == "foreach_batch"
    if not (in_function or "delta" in tables or "delta" in sink_name(view).lower()):
        return None
    own = {name: count for name, count in OF_DELTA.items() if count != view.plan.shuffle_partitions}
    return next((name for name, count in own.items() if tasks.count(count) * count > sum(tasks) / 2), None)


def _in_code(view: QueryView, tasks: list[int]) -> int | None:
    """The tasks of a stage whose number neither the setting nor the state gives: a `repartition` in the query does.

    None where most of the tasks have another reason, or the setting is not known.
    """
    given = {view.plan.shuffle_partitions, *(operator.shuffle_partitions for operator in view.operators)}
    own = [count for count in tasks if count not in given]
    return max(own) if view.plan.shuffle_partitions is not None and sum(own) > sum(tasks) / 2 else None


def _tell(view: QueryView, found: Profile) -> Told | None:
    stages = found.splits[-1].stages  # of the newest batch
    tiny, others = ([each.stage for each in stages if (each.many > 0) is many] for many in (True, False))
    if not tiny:
        return None
    tasks, records = sum(stage.tasks for stage in tiny), sum(stage.records for stage in tiny)
    cores = sum(found.splits[-1].cores.values()) or 1
    counts, few = [stage.tasks for stage in tiny], ENOUGH_TASKS_PER_CORE * cores
    delta, read, own = _of_delta(view, counts), _of_read(found.splits[-1].batch, tiny, others), _in_code(view, counts)
    each = records / tasks
    return Told(
        Component("stage", "files of the Delta table" if delta else COMPONENTS.get(read, "tasks of the source")),
        _remedies(view, cores, delta, read, own),
        {
            "tasks": f"{tasks:,}",
            "cores": counted(cores, "core"),
            "records": counted(each, "record") if each >= 1 else "less than 1 record",
        },
        (Evidence("tasks", float(tasks), "count", f"<= {few}", found.at),),
    )


def _remedies(view: QueryView, cores: int, delta: str | None, read: str, own: int | None) -> tuple[Remedy, ...]:
    few = ENOUGH_TASKS_PER_CORE * cores
    step, shuffle = partial(first_step, "too-many-tasks"), (Setting(SHUFFLE, few),)
    if delta:
        why = f"Delta has {OF_DELTA[delta]:,} tasks for it by default; {SHUFFLE} does not change that"
        return (step(GENERAL, why, settings=(Setting(delta, cores),), setting=delta, number=f"{cores}"),)
    if read:
        return (step(read, "each partition that is read is a task, however few its rows", number=f"{few}"),)
    if own is not None:
        why = f"{SHUFFLE} is {view.plan.shuffle_partitions} and does not change it; three tasks a core keep all busy"
        return (step("repartition", why, settings=(Setting(REPARTITION, few),), tasks=f"{own}", number=f"{few}"),)
    if view.run.stateful and not view.plan.temporary_checkpoint:
        again = Remedy(
            f"start with a new checkpoint and {SHUFFLE}={few}, or repartition the state (RocksDB, from Spark 4.2 on)",
            "the checkpoint fixes the shuffle partitions of a stateful query: the setting alone changes nothing",
            safe=False,
            settings=shuffle,
        )
        return step("stateful", "only a new checkpoint, or state that is repartitioned, has fewer"), again
    why = "two or three tasks per core keep all cores busy"
    if keeps_shuffle_partitions(view):
        why += f"; before Spark 4.1 the checkpoint keeps {SHUFFLE}"
        return (step("kept", why, setting=SHUFFLE, number=f"{few}"),)
    return (step(GENERAL, why, settings=shuffle, setting=SHUFFLE, number=f"{few} or fewer"),)


CAUSE = Cause(
    slug="too-many-tasks",
    runbook=__doc__,
    parts=("many_tasks",),
    happened="{tasks} tasks on {cores} take {seconds} of a batch of {batch}, with {records} each",
    explains=(*LATE, "small-batch-overhead", "state-commit-slow"),
    formulas={
        "tasks": "tasks of the newest batch's stages that have at least 10 for each core, with a median of 0.25 s and "
        "fewer than 500 records and 500 kB each, or at least 50 for each core with fewer than 50 records and 50 kB "
        "each",
    },
    tell=_tell,
)
