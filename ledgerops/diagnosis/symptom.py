"""What a symptom without a known cause says: where the time of a batch goes, and a first step that fits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ledgerops.diagnosis.attribution import attribution
from ledgerops.model.finding import Finding, Part, Remedy
from ledgerops.signals.query_view import QueryView

SYMPTOMS = ("falling-behind", "trigger-overrun", "freshness-breach", "long-batches")
ROOM_RATIO = 0.7  # of the interval: shorter batches leave room, so their time is not the problem

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
    "driver": (
        "work in the driver while no task runs",
        "take a thread dump of the driver during a batch, and see what it does before its first task",
        "tasks and cores have no part in that time",
    ),
    "after_tasks": (
        "what follows the last task",
        "time one write at the target of the sink",
        "no task runs in that time, so more cores do not help",
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
    "unclaimed": (
        "time that Spark attributes to no phase",
        "look for pauses of the driver's JVM",
        "no phase ran in it",
    ),
}


def largest_part(view: QueryView) -> Part | None:
    """The part of a typical batch that takes most of it; None before there is a batch with rows."""
    return max(attribution(view), key=lambda part: part.seconds, default=None)


def with_largest_part(finding: Finding, view: QueryView) -> Finding:
    """A symptom without a cause, with the largest part of a batch and a remedy that fits it; others as they are."""
    part = largest_part(view) if finding.rule in SYMPTOMS else None
    if part is None:
        return finding
    interval, duration = view.trigger.interval or 0.0, part.seconds / part.share if part.share else 0.0
    words, step, why = PARTS[part.part]
    where = f"the largest part of a batch is {words}: {part.seconds:.1f} of {duration:.1f} s"
    if finding.rule == "freshness-breach" and interval and duration < ROOM_RATIO * interval:
        where = f"batches take {duration:.1f} s of {interval:g} s, so it is not their time that makes results old"
        step = "compare the watermark with the event time of each input"
        why = "rows that come late, or an input that sends none, hold results back without a slow batch"
    return replace(finding, summary=f"{finding.summary}; {where}", remedies=(Remedy(step, why), *_kept(finding)))


def _kept(finding: Finding) -> tuple[Remedy, ...]:
    """The remedies of the symptom itself that do not speak of another cause."""
    return tuple(each for each in finding.remedies if "root cause" not in each.action)
