"""The causes of time, each a record over the parts of a batch, in the order in which they are listed."""

from ledgerops.diagnosis.cause import Cause
from ledgerops.diagnosis.causes import (
    checkpoint_slow,
    cpu_saturated,
    gc_pressure,
    key_skew,
    memory_spill,
    noisy_neighbour,
    python_bound,
    rocksdb_stall,
    scheduler_skew,
    slow_sink,
    slow_source,
    small_batch_overhead,
    source_partition_skew,
    state_commit_slow,
    statement_retries,
    straggler,
    table_scan,
    task_retries,
    too_many_tasks,
)

CAUSES: tuple[Cause, ...] = tuple(module.CAUSE for module in (
    slow_source, slow_sink, python_bound, table_scan, key_skew, task_retries, statement_retries, straggler,
    scheduler_skew, too_many_tasks, small_batch_overhead, checkpoint_slow, source_partition_skew, state_commit_slow,
    rocksdb_stall, gc_pressure, memory_spill, cpu_saturated, noisy_neighbour,
))  # fmt: skip
