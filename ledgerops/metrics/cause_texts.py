"""What each rule means and what to do first, as two short sentences without numbers.

They are label values of `ledgerops_root_cause_info`, so the vocabulary is bounded: one pair for each rule, and of
BY_PART one more for each part that a batch can have. A first action changes nothing that cannot be undone.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class CauseText(NamedTuple):
    """`summary` says what is wrong, `action` the first safe thing to do."""

    summary: str
    action: str


#: what each rule looks at -> rule, summary, action
FAMILIES: Mapping[str, tuple[tuple[str, str, str], ...]] = {
    "Symptoms": (
        ("falling-behind", "The backlog keeps growing.", "Check which part of the batch takes longest."),
        ("freshness-breach", "Results are older than the objective.", "Check lag and watermark lag by partition."),
        ("trigger-overrun", "Batches take longer than the trigger interval.", "Check which part of the batch grew."),
        ("long-batches", "Batches run back to back and take long.", "Check which part of a batch is largest."),
        ("query-stuck", "No batch has finished for far too long.", "Take a thread dump of the driver."),
        ("query-failed", "The query failed with an exception.", "Read the exception in the driver log."),
        ("crash-loop", "The query fails again after each restart.", "Stop the restarts, then read the exception."),
        ("rows-dropped", "Late rows are being dropped.", "Find out which producer sends late or future-dated rows."),
        ("retention-risk", "Unread rows are close to being deleted.", "Raise retention.ms of the topic now."),
        ("data-loss", "Rows were deleted before they were read.", "Raise the retention, then find another copy."),
    ),
    "Input": (
        ("input-overload", "More rows arrive than the query can process.", "Check the input rate at the producer."),
        ("slow-creep", "The load is rising towards capacity.", "Ask the producer how far the load will rise."),
        ("rate-limited", "The source's rate limit holds the query back.", "Compare the limit with the arrival rate."),
        ("source-partition-skew", "One source partition gets most rows.", "Check how the producer picks partitions."),
        ("slow-source", "Reading from the source is slow.", "Check the broker's request latency and quotas."),
        ("source-unreachable", "The broker does not answer.", "Check that the broker is up and can be reached."),
        ("input-stopped", "An input that should send rows is silent.", "Check the producer of that input."),
        ("input-recomputed", "Each batch reads its input several times.", "Count the actions on the batch."),
        ("catching-up", "The query is reading an old backlog.", "Wait; watch the time to clear and the retention."),
    ),
    "Work": (
        ("slow-sink", "Writing to the sink is slow.", "Time one write at the target; look for locks and limits."),
        ("intermittent-sink", "Some writes to the sink take very long.", "Check the target's slow log at those times."),
        ("python-bound", "Python workers take most of the time.", "Profile the Python function; see if it can be SQL."),
        ("key-skew", "One key holds too many rows.", "Find the hot key and see whether it is a default value."),
        ("straggler", "One task or executor is far slower.", "Check the machine of the slow executor."),
        ("scheduler-skew", "One executor does most of the work.", "Compare task time by executor."),
        ("small-batch-overhead", "Fixed cost dominates each batch.", "Compare fixed cost and trigger interval."),
        ("too-many-tasks", "Too many tiny tasks in each batch.", "Compare the number of tasks with the cores."),
    ),
    "Event time": (
        ("late-data", "Rows arrive later than the watermark allows.", "Find the producer that sends late."),
        ("watermark-stalled", "The watermark does not move.", "Find the input that is silent."),
        ("watermark-jump", "A future-dated row moved the watermark.", "Find the producer whose clock is ahead."),
        ("partition-time-spread", "A partition is far ahead in event time.", "Compare lag by partition."),
    ),
    "State": (
        ("unbounded-state", "State grows without a bound.", "Check the plan for a watermark or a time to live."),
        ("state-growth", "State is growing towards its limit.", "Find the input that holds the watermark back."),
        ("state-commit-slow", "Committing state takes most of the batch.", "Time a write to the checkpoint folder."),
        ("rocksdb-stall", "RocksDB stalls its writers.", "Check the disk that holds spark.local.dir."),
        ("eviction-storm", "A lot of state expires at once.", "Wait for that batch; check its removed rows."),
        ("state-snapshot-lag", "State snapshots are not uploaded.", "Look for failed maintenance in executor logs."),
    ),
    "Resources": (
        ("gc-pressure", "Garbage collection stops the tasks.", "Check heap use and the size of the state."),
        ("memory-spill", "Tasks spill to disk.", "Check the memory for each task and the rows of a batch."),
        ("cpu-saturated", "All cores of the machine are busy.", "Find the processes that use the CPU."),
        ("noisy-neighbour", "Another query takes the cores.", "Check what changed in the other query."),
        ("too-few-slots", "Tasks of a real-time query wait for cores.", "Give the application a core for each task."),
        ("executor-lost", "An executor was lost.", "Check why the executor's process ended."),
        ("checkpoint-slow", "Writing the checkpoint is slow.", "Check the latency of the checkpoint storage."),
        ("checkpoint-full", "The checkpoint storage is full.", "Free space or raise the quota; keep the checkpoint."),
        ("many-small-files", "Each batch adds many small files.", "Compact the table that the query writes."),
        ("no-checkpoint", "The query has no checkpoint location.", "Decide what a restart must not skip or repeat."),
    ),
    "Ledger": (
        ("conflicting-duplicates", "Copies of a transaction disagree.", "Ask the producer which copy is right."),
        ("ledger-imbalance", "Money out does not match money in.", "Stop what reads the output, then verify it."),
    ),
    "Observer and alerting": (
        ("observer-degraded", "Data about this query is missing.", "Check the driver log for lines from ledgerops."),
    ),
}
CAUSE_TEXTS: Mapping[str, CauseText] = {
    slug: CauseText(summary, action) for family in FAMILIES.values() for slug, summary, action in family
}
BY_PART = ("falling-behind", "trigger-overrun", "long-batches")  # symptoms that say which part of a batch is largest


def text_of(rule: str) -> CauseText:
    """The texts of a rule; for a rule without an entry its name and a pointer to the command that explains it."""
    return CAUSE_TEXTS.get(rule) or CauseText(f"{rule.replace('-', ' ').capitalize()}.", f"Run ledgerops rules {rule}.")
