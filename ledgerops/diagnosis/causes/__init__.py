"""The causes of time, each a record over the parts of a batch, in the order in which they are listed."""

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
    straggler,
    too_many_tasks,
)

CAUSES = (
    slow_source.CAUSE,
    slow_sink.CAUSE,
    python_bound.CAUSE,
    key_skew.CAUSE,
    straggler.CAUSE,
    scheduler_skew.CAUSE,
    too_many_tasks.CAUSE,
    small_batch_overhead.CAUSE,
    checkpoint_slow.CAUSE,
    source_partition_skew.CAUSE,
    state_commit_slow.CAUSE,
    rocksdb_stall.CAUSE,
    gc_pressure.CAUSE,
    memory_spill.CAUSE,
    cpu_saturated.CAUSE,
    noisy_neighbour.CAUSE,
)
