"""What a symptom without a known cause says: where the time of a batch goes, and a first step that fits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ledgerops.common.format import duration
from ledgerops.diagnosis.facts import state_cost
from ledgerops.diagnosis.facts.dump import dump
from ledgerops.diagnosis.limits import FAR_TIMES
from ledgerops.diagnosis.profile import profile, shown
from ledgerops.metrics.first_steps import BY_LARGEST_PART, ONE_LONG_BATCH, first_step
from ledgerops.model.finding import Finding, Part, Remedy
from ledgerops.signals.baseline import RECENT_BATCHES
from ledgerops.signals.query_view import QueryView
from ledgerops.signals.rate_cap import ROOM_SHARE

SYMPTOMS = ("falling-behind", "trigger-overrun", "freshness-breach", "long-batches")
BY_WATERMARK = first_step(
    "freshness-breach",
    "event time",
    "rows that come late, or an input that sends none, hold results back without a slow batch",
)
BY_ROWS = first_step("freshness-breach", "rows", "rows that were late on arrival stay late")
NO_OTHER = "no batch before it took that long"


PARTS: Mapping[str, tuple[str, str]] = {  # part: (what passes there, why to look there)
    "latest_offset": ("asking the source for its offsets", "a batch waits for it"),
    "get_batch": ("listing what the source has", "a batch waits for it"),
    "query_planning": ("planning the batch in the driver", "each batch is planned anew, however few rows it has"),
    "wal_commit": ("writing the checkpoint", "each batch writes its offsets there"),
    "commit_offsets": ("committing to the checkpoint", "each batch ends with a write there"),
    "driver_before": ("work in the driver before the first task", "tasks and cores have no part in that time"),
    "driver_between": ("work in the driver between two stages", "tasks and cores have no part in that time"),
    "driver_waits": ("waiting in the driver while no stage runs", "tasks and cores have no part in that time"),
    "after_tasks": ("what follows the last task", "no task runs in that time, so more cores do not help"),
    "source_wait": ("tasks that wait for the source", "a task ends with its last row"),
    "sink_wait": ("tasks that wait for the sink", "a task ends with its last write"),
    "many_tasks": ("starting many tiny tasks", "each task costs some milliseconds, however little it does"),
    "few_rows": ("computing in tasks with hardly any rows", "that time is the same for more rows"),
    "state_stall": ("stalled writes of RocksDB", "flushes wait for it"),
    "spill": ("stages that spill", "rows are written to disk"),
    "uneven_keys": ("one task that has most of the rows", "a key stays in one task"),
    "uneven_source": ("one source partition that has most of the rows", "one task reads each"),
    "uneven_task": ("waiting for one slow task", "a stage ends with its slowest task"),
    "uneven_executors": ("waiting for one executor", "the others are idle"),
    "other_queries": ("waiting for cores that other queries have", "they share them"),
    "other_processes": ("waiting for cores that others have", "they share the machine"),
    "launch": (
        "starting tasks and collecting their results",
        "each task costs some milliseconds, however little it does",
    ),
    "python": ("Python workers", "the JVM waits for the workers"),
    "gc": ("garbage collection", "tasks are stopped while it runs"),
    "state_commit": ("saving the state", "each partition saves its state in every batch"),
    "state_update": ("reading and changing the state", "every row looks up its state"),
    "shuffle": ("shuffling rows", "rows move between all tasks"),
    "cpu": ("computing in the JVM", "the tasks compute for most of their time"),
    "waiting": (
        "tasks that wait, for a disk, a network, a lock or a core",
        "the tasks neither compute nor report what they do",
    ),
    "tasks_unknown": ("tasks that were not sampled", "it has every task, and shows which part of the batch takes long"),
    "unattributed": ("time that Spark attributes to no phase", "no phase ran in it"),
}


def largest_part(view: QueryView) -> Part | None:
    """The part of a typical batch that takes most of it; None before there is a batch with rows."""
    return max(shown(profile(view)), key=lambda part: part.seconds, default=None)


def with_largest_part(finding: Finding, view: QueryView) -> Finding:
    """A symptom without a cause, with the largest part of a batch and a remedy that fits it; others as they are."""
    part = largest_part(view) if finding.rule in SYMPTOMS else None
    if part is None:
        return finding
    interval, typical = view.interval, part.seconds / part.share if part.share else 0.0
    words, why = PARTS[part.part]
    step = _look(BY_LARGEST_PART[part.part], why)
    where = f"the largest part of a batch is {words}: {duration(part.seconds)} of {duration(typical)}"
    running = view.run.unfinished_seconds or 0.0
    longest = max([running, *(batch.duration for batch in view.batches[-RECENT_BATCHES:])])
    if longest > max(FAR_TIMES * typical, interval):
        took = "has run for" if longest == running else "took"
        where = f"a batch {took} {duration(longest)}, a typical one takes {duration(typical)}"
        step = dump(view) if longest == running else _look(ONE_LONG_BATCH, NO_OTHER)
    elif finding.rule == "freshness-breach" and typical < ROOM_SHARE * interval:
        where = f"batches take {duration(typical)}, the trigger interval is {interval:g} s"
        where = f"{where}: their time is not what makes results old"
        step = BY_WATERMARK if state_cost.has_watermark(view) else BY_ROWS
    return replace(finding, summary=f"{finding.summary}; {where}", remedies=(step, *_kept(finding)))


def _look(step: str, why: str) -> Remedy:
    return Remedy(step, why, general=step)


def _kept(finding: Finding) -> tuple[Remedy, ...]:
    """The remedies of the symptom itself beside the look for what it comes from."""
    return tuple(each for each in finding.remedies if each.settings)
