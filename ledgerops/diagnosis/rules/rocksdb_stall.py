"""RocksDB stall: writes to the state store stall because flushes or compactions do not keep up.

Meaning: RocksDB pauses writes when its write buffers are full, or when too many files wait for compaction. Meanwhile
    the tasks of the query wait.
Impact: batches take longer for the same number of rows. If it lasts, the query falls behind.
Diagnosis: 1. `rate(ledgerops_rocksdb_writer_stall_seconds_total{query="QUERY"}[5m])` is above 0 (in task seconds). If
    it is back at 0, the stall is over.
    2. Check the disk of `spark.local.dir` with `iostat -x`. If it is busy, flushes and compactions wait for the disk;
    if it is not, the write buffers are too small.
    3. Compare `ledgerops_state_rows{query="QUERY"}` with its past. If it grows faster than before, the load changed; if
    not, the disk or the settings did.
Mitigation: move other work away from the disk of `spark.local.dir`. At the next restart put `spark.local.dir` on a
    local SSD, or give RocksDB larger buffers: with `boundedMemoryUsage` raise `maxMemoryUsageMB` or
    `writeBufferCacheRatio`, without it `writeBufferSizeMB`. All of these may be changed with the same checkpoint.
Evidence:
    rocksdb_writer_stall_seconds: median over the latest 3 batches, without those of the first 10 s of the run, of
        customMetrics.rocksdbWriterStallLatencyMs / 1e9 of the operator; in task seconds, as in Spark. In spite of its
        name the metric counts nanoseconds: Spark 3.2 to 4.2 multiplies RocksDB's microseconds by 1,000 instead of
        dividing (nativeOpsLatencyMillis of RocksDBStateStoreProvider)
    rocksdb_writer_stall_share: that value / min(numShufflePartitions, cores of the active executors), divided by the
        median of durationMs.triggerExecution / 1000 of these batches
"""

from collections.abc import Iterator
from statistics import median

from ledgerops.diagnosis import state_cost
from ledgerops.diagnosis.rule import Rule
from ledgerops.model.finding import Component, Evidence, Finding, Remedy
from ledgerops.signals.baseline import RECENT_BATCHES
from ledgerops.signals.query_view import QueryView

STALL = "rocksdbWriterStallLatencyMs"
SECONDS_PER_NANOSECOND = 1e-9  # the metric is in nanoseconds, whatever its name says
# of a batch's wall time, and of the trigger interval: less is a flush now and then, as RocksDB means it to be
MIN_STALL_SHARE = 0.1


def check(view: QueryView) -> Iterator[Finding]:
    if view.last is None or not any(operator.custom.get(STALL) for operator in view.last.operators):
        return
    latest = view.baseline.recent
    if len(latest) < RECENT_BATCHES:
        return
    duration = median(batch.duration for batch in latest)
    for index, operator in enumerate(view.last.operators):
        reported = state_cost.reports(latest, index)
        stalls = [state.custom.get(STALL, 0.0) * SECONDS_PER_NANOSECOND for _, state in reported]
        if len(stalls) < RECENT_BATCHES or min(stalls) <= 0 or duration <= 0:
            continue
        seconds = median(stalls)
        wall = seconds / state_cost.parallel_tasks(view, operator)
        share = min(1.0, wall / duration)
        if share < MIN_STALL_SHARE or wall < MIN_STALL_SHARE * (view.trigger.interval or 0.0):
            continue
        at = view.last.ended
        yield Finding(
            f"writes to the state of {operator.name} stalled for {seconds:.1f} task seconds per batch, "
            f"{share:.0%} of its {duration:.1f} s",
            Component("operator", operator.name, "RocksDB"),
            (
                Evidence("rocksdb_writer_stall_seconds", seconds, "seconds", "0", at),
                Evidence("rocksdb_writer_stall_share", share, "ratio", f"< {MIN_STALL_SHARE:g}", at),
            ),
            (
                Remedy("put spark.local.dir on a local SSD", "flushes and compactions then keep up with the writes"),
                Remedy(
                    "give RocksDB larger write buffers and restart: writeBufferSizeMB, or maxMemoryUsageMB with "
                    "boundedMemoryUsage",
                    "writes stall when all write buffers wait to be flushed",
                ),
            ),
            confidence=min(0.95, 0.6 + 0.4 * share),
            began=latest[0].started,
            share=share,
        )


def acquit(view: QueryView) -> str | None:
    latest = [state for batch in view.baseline.recent for state in batch.operators if STALL in state.custom]
    if not latest or any(state.custom[STALL] for state in latest):
        return None
    batches = min(RECENT_BATCHES, len(view.baseline.steady))
    return f"RocksDB stalled no write in the latest {f'{batches} batches' if batches > 1 else 'batch'}"


RULE = Rule(
    "rocksdb-stall",
    "warning",
    check,
    __doc__,
    ("state-commit-slow", "falling-behind", "trigger-overrun"),
    acquit,
    needs_harm=True,
)
