"""What a symptom without a known cause says: where the time of a batch goes, and a first step that fits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ledgerops.common.format import duration
from ledgerops.diagnosis.facts import state_cost
from ledgerops.diagnosis.limits import FAR_TIMES
from ledgerops.diagnosis.profile import profile, shown
from ledgerops.model.finding import Finding, Part, Remedy
from ledgerops.signals.baseline import RECENT_BATCHES
from ledgerops.signals.query_view import QueryView
from ledgerops.signals.rate_cap import ROOM_SHARE

SYMPTOMS = ("falling-behind", "trigger-overrun", "freshness-breach", "long-batches")
RUNNING = (
    "take a thread dump of the driver, and see what the batch waits for",
    "no batch before it took that long",
)
BY_WATERMARK = (
    "compare the watermark with the event time of each input",
    "rows that come late, or an input that sends none, hold results back without a slow batch",
)
BY_ROWS = ("compare the time in the rows with the time of their arrival", "rows that were late on arrival stay late")

PARTS: Mapping[str, tuple[str, str, str]] = {
    # part: (what passes there, first step, why)
    "latest_offset": ("asking the source for its offsets", "time one request to the source", "a batch waits for it"),
    "get_batch": ("listing what the source has", "time one listing of the source", "a batch waits for it"),
    "query_planning": (
        "planning the batch in the driver",
        "simplify the plan of the query, or trigger less often",
        "each batch is planned anew, however few rows it has",
    ),
    "wal_commit": ("writing the checkpoint", "time one write to the checkpoint", "each batch writes its offsets there"),
    "commit_offsets": (
        "committing to the checkpoint",
        "time one write to the checkpoint",
        "each batch ends with a write there",
    ),
    "driver_before": (
        "work in the driver before the first task",
        "take a thread dump of the driver during a batch, and see what it does before its first task",
        "tasks and cores have no part in that time",
    ),
    "driver_between": (
        "work in the driver between two stages",
        "take a thread dump of the driver during a batch, and see what it does between its tasks",
        "tasks and cores have no part in that time",
    ),
    "driver_waits": (
        "waiting in the driver while no stage runs",
        "see where the function of foreachBatch waits: `py-spy dump --pid PID` on the driver's Python process",
        "tasks and cores have no part in that time",
    ),
    "after_tasks": (
        "what follows the last task",
        "time one write at the target of the sink",
        "no task runs in that time, so more cores do not help",
    ),
    "source_wait": ("tasks that wait for the source", "time one read of the source", "a task ends with its last row"),
    "sink_wait": (
        "tasks that wait for the sink",
        "time one write at the target of the sink",
        "a task ends with its last write",
    ),
    "many_tasks": (
        "starting many tiny tasks",
        "compare the number of tasks of a batch with the cores",
        "each task costs some milliseconds, however little it does",
    ),
    "few_rows": (
        "computing in tasks with hardly any rows",
        "compare the number of tasks of a batch with its rows",
        "that time is the same for more rows",
    ),
    "state_stall": ("stalled writes of RocksDB", "check the disk of spark.local.dir", "flushes wait for it"),
    "spill": ("stages that spill", "compare the rows of a batch with the memory of a task", "rows are written to disk"),
    "uneven_keys": ("one task that has most of the rows", "find the hot key", "a key stays in one task"),
    "uneven_source": (
        "one source partition that has most of the rows",
        "compare the rows of the partitions",
        "one task reads each",
    ),
    "uneven_task": (
        "waiting for one slow task",
        "find out on which executor it runs",
        "a stage ends with its slowest task",
    ),
    "uneven_executors": ("waiting for one executor", "compare the tasks of the executors", "the others are idle"),
    "other_queries": (
        "waiting for cores that other queries have",
        "look at the batches of the other queries",
        "they share them",
    ),
    "other_processes": (
        "waiting for cores that others have",
        "find the processes that use the CPU",
        "they share the machine",
    ),
    "launch": (
        "starting tasks and collecting their results",
        "compare the number of tasks of a batch with the cores",
        "each task costs some milliseconds, however little it does",
    ),
    "python": (
        "Python workers",
        "find the function that takes longest in the Spark UI, page SQL",
        "the JVM waits for the workers",
    ),
    "gc": ("garbage collection", "give the executors more memory", "tasks are stopped while it runs"),
    "state_commit": (
        "saving the state",
        "compare the number of shuffle partitions with the cores",
        "each partition saves its state in every batch",
    ),
    "state_update": (
        "reading and changing the state",
        "see how many rows the state holds, and whether a watermark or a time to live removes any",
        "every row looks up its state",
    ),
    "shuffle": ("shuffling rows", "see in the Spark UI what the stages write and read", "rows move between all tasks"),
    "cpu": (
        "computing in the JVM",
        "give the query more cores, up to the number of its tasks, or reduce its load",
        "the tasks compute for most of their time",
    ),
    "waiting": (
        "tasks that wait, for a disk, a network, a lock or a core",
        "take a thread dump of an executor during a batch",
        "the tasks neither compute nor report what they do",
    ),
    "tasks_unknown": (
        "tasks that were not sampled",
        "run `ledgerops diagnose --from` on the Spark event log of the application",
        "it has every task, and shows which part of the batch takes long",
    ),
    "unattributed": (
        "time that Spark attributes to no phase",
        "look for pauses of the driver's JVM",
        "no phase ran in it",
    ),
}


def largest_part(view: QueryView) -> Part | None:
    """The part of a typical batch that takes most of it; None before there is a batch with rows."""
    return max(shown(profile(view)), key=lambda part: part.seconds, default=None)


def with_largest_part(finding: Finding, view: QueryView) -> Finding:
    """A symptom without a cause, with the largest part of a batch and a remedy that fits it; others as they are."""
    part = largest_part(view) if finding.rule in SYMPTOMS else None
    if part is None:
        return finding
    interval, typical = view.trigger.interval or 0.0, part.seconds / part.share if part.share else 0.0
    words, step, why = PARTS[part.part]
    where = f"the largest part of a batch is {words}: {duration(part.seconds)} of {duration(typical)}"
    running = view.run.unfinished_seconds or 0.0
    longest = max([running, *(batch.duration for batch in view.batches[-RECENT_BATCHES:])])
    if longest > max(FAR_TIMES * typical, interval):
        took = "has run for" if longest == running else "took"
        where, step, why = f"a batch {took} {duration(longest)}, a typical one takes {duration(typical)}", *RUNNING
    elif finding.rule == "freshness-breach" and typical < ROOM_SHARE * interval:
        where = f"batches take {duration(typical)}, the trigger interval is {interval:g} s"
        where = f"{where}: their time is not what makes results old"
        step, why = BY_WATERMARK if state_cost.has_watermark(view) else BY_ROWS
    return replace(finding, summary=f"{finding.summary}; {where}", remedies=(Remedy(step, why), *_kept(finding)))


def _kept(finding: Finding) -> tuple[Remedy, ...]:
    """The remedies of the symptom itself that do not speak of another cause."""
    return tuple(each for each in finding.remedies if "root cause" not in each.action)
