"""The drills, in the order in which they are listed."""

from ledgerops.drills import (
    flaky_sink,
    hung_sink,
    hung_worker,
    masked_sink,
    python_bound,
    rotating_hot_key,
    scheduler_skew,
    sink_and_whale,
    slow_executor,
    slow_sink,
    slow_state_commit,
    small_batch_overhead,
    source_partition_skew,
    straggler,
    too_many_tasks,
    whale_key,
)

DRILLS = (
    slow_sink.DRILL,
    whale_key.DRILL,
    rotating_hot_key.DRILL,
    source_partition_skew.DRILL,
    flaky_sink.DRILL,
    hung_sink.DRILL,
    hung_worker.DRILL,
    too_many_tasks.DRILL,
    python_bound.DRILL,
    straggler.DRILL,
    slow_executor.DRILL,
    scheduler_skew.DRILL,
    small_batch_overhead.DRILL,
    sink_and_whale.DRILL,
    masked_sink.DRILL,
    slow_state_commit.DRILL,
)
BY_NAME = {drill.name: drill for drill in DRILLS}
