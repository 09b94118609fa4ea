"""What each rule means and what to do first, as two short sentences without numbers.

They are label values of `ledgerops_root_cause_info`, so the vocabulary is bounded: one summary for each rule, and of
BY_PART one for each part that a batch can have; the steps are those of `first_steps`, without names and numbers.
"""

from collections.abc import Mapping
from typing import NamedTuple

from ledgerops.metrics.first_steps import FIRST_STEPS, GENERAL, sentence


class CauseText(NamedTuple):
    """`summary` says what is wrong, `action` what to do first."""

    summary: str
    action: str


#: what each rule looks at -> rule -> summary
FAMILIES: Mapping[str, Mapping[str, str]] = {
    "Symptoms": {
        "falling-behind": "The backlog keeps growing.",
        "freshness-breach": "Results are older than the objective.",
        "trigger-overrun": "Batches take longer than the trigger interval.",
        "long-batches": "Batches run back to back and take long.",
        "query-stuck": "No batch has finished for far too long.",
        "query-failed": "The query failed with an exception.",
        "crash-loop": "The query fails again after each restart.",
        "rows-dropped": "Late rows are being dropped.",
        "retention-risk": "Unread rows are close to being deleted.",
        "data-loss": "Rows were deleted unread, or skipped by the sink.",
    },
    "Input": {
        "input-overload": "More rows arrive than the query can process.",
        "slow-creep": "The load is rising towards capacity.",
        "rate-limited": "The source's rate limit holds the query back.",
        "source-partition-skew": "One source partition gets most rows.",
        "slow-source": "Reading from the source is slow.",
        "source-unreachable": "The broker does not answer.",
        "input-stopped": "An input that should send rows is silent.",
        "input-recomputed": "Each batch reads its input several times.",
        "catching-up": "The query is reading an old backlog.",
    },
    "Work": {
        "slow-sink": "Writing to the sink is slow.",
        "intermittent-sink": "Some writes to the sink take very long.",
        "python-bound": "Python workers take most of the time.",
        "table-scan": "Each batch reads a table or files again.",
        "key-skew": "One key holds too many rows.",
        "task-retries": "Tasks fail and are run again.",
        "statement-retries": "Statements of foreachBatch fail and are done again.",
        "straggler": "One task or executor is far slower.",
        "scheduler-skew": "One executor does most of the work.",
        "small-batch-overhead": "Fixed cost dominates each batch.",
        "too-many-tasks": "Too many tiny tasks in each batch.",
    },
    "Event time": {
        "late-data": "Rows arrive later than the watermark allows.",
        "watermark-stalled": "The watermark does not move.",
        "watermark-jump": "A future-dated row moved the watermark.",
        "partition-time-spread": "A partition is far ahead in event time.",
    },
    "State": {
        "unbounded-state": "State grows without a bound.",
        "state-growth": "State is growing towards its limit.",
        "state-commit-slow": "Committing state takes most of the batch.",
        "rocksdb-stall": "RocksDB stalls its writers.",
        "eviction-storm": "A lot of state expires at once.",
        "state-snapshot-lag": "State snapshots are not uploaded.",
    },
    "Resources": {
        "gc-pressure": "Garbage collection stops the tasks.",
        "memory-spill": "Tasks spill to disk.",
        "memory-leak": "Python's memory grows until it is full.",
        "cpu-saturated": "All cores that the driver may use are busy.",
        "noisy-neighbour": "Another query or job takes the cores.",
        "too-few-slots": "Tasks of a real-time query wait for cores.",
        "executor-lost": "An executor was lost.",
        "checkpoint-slow": "Writing the checkpoint is slow.",
        "checkpoint-full": "The checkpoint storage is full.",
        "many-small-files": "Each batch adds many small files.",
        "no-checkpoint": "The query has no checkpoint location that lasts.",
    },
    "Ledger": {
        "conflicting-duplicates": "Copies of a transaction disagree.",
        "ledger-imbalance": "Money out does not match money in.",
    },
    "Observer and alerting": {"observer-degraded": "Data about this query is missing."},
}
CAUSE_TEXTS: Mapping[str, CauseText] = {
    slug: CauseText(summary, sentence(FIRST_STEPS[slug][GENERAL].general))
    for family in FAMILIES.values()
    for slug, summary in family.items()
}
BY_PART = ("falling-behind", "trigger-overrun", "long-batches")  # symptoms that say which part of a batch is largest
