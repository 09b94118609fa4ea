"""GC pressure: garbage collection stops the tasks for much of their time.

Meaning: long-lived objects nearly fill the heap (state of the HDFS-backed store, caches, broadcasts), or tasks create
    garbage faster than it can be collected. The collector runs again and again, and all tasks wait for it.
Impact: every batch takes longer, and the query falls behind. Executors may soon be lost with an OutOfMemoryError.
Diagnosis: 1. `rate(ledgerops_executor_gc_seconds_total[5m]) / rate(ledgerops_executor_run_seconds_total[5m])` is the
    share of run time by executor. If one executor is far above the others, it holds more data: see `key-skew`.
    2. If `ledgerops_state_memory_bytes{query="QUERY"}` is a large part of the heap, the state fills it: see
    `state-growth` and `unbounded-state`.
    3. Otherwise `jcmd PID GC.class_histogram` on the executor shows which objects fill it. Several queries of one
    driver share its heaps.
Mitigation: give the executors more memory or fewer cores each; this needs only a restart. Then bound the state with a
    watermark or a time to live, or keep it in RocksDB, off the heap. The checkpoint fixes the state store provider, so
    changing it needs a new checkpoint.
Evidence:
    gc_share_of_stages: sum of jvmGcTime divided by the sum of executorRunTime, over the stages of the newest 3 batches
        whose tasks are known (among the last ten, without the first of the run). Source: REST /stages; records `tasks`:
        gc_seconds, run_seconds
    gc_seconds_per_batch: the same sum of jvmGcTime in seconds, divided by the number of tasks that run at once (the
        most tasks of a stage, at most the cores of the active executors) and by the number of these batches
    gc_share_of_executors: growth of the executors' totalGCTime divided by that of totalDuration, from the oldest sample
        of the last 30 s to the newest. Source: REST /executors; records `host`: gc_seconds, run_seconds of all
        executors, on a cluster without the driver
    state_share_of_heap: sum of memoryUsedBytes over stateOperators in the newest batch, divided by the heap: the sum of
        maxMemory (memory_max_bytes) / 0.6 + 300 MiB over the same executors, if they are active
"""

from collections.abc import Iterator
from typing import NamedTuple

from ledgerops.diagnosis import batch_time, overload, state_cost, strain
from ledgerops.diagnosis.rule import Rule
from ledgerops.diagnosis.state_cost import MIN_GC_SHARE
from ledgerops.model.finding import Component, Evidence, Finding, Remedy
from ledgerops.signals.memo import once
from ledgerops.signals.query_view import QueryView

SEVERE_GC_SHARE = 0.20  # Dr. Elephant's "critical" (ExecutorGcHeuristic): reported even before a batch is late
MIN_SECONDS = 0.1  # of wall time in a batch: the young collections of any JVM take less
# share of the heap from which state is worth naming as what fills it: Spark samples what a store holds, and reported a
# quarter of it where values were large
MIN_HEAP_SHARE = 0.1

MORE_MEMORY = Remedy(
    "give the executors more memory (spark.executor.memory, or spark.driver.memory in local mode), or fewer cores each",
    "the collector then runs less often; this needs a restart",
    safe=False,
)
OFF_HEAP = Remedy(
    "keep the state in RocksDB, off the heap, or bound it with a watermark or a time to live",
    "the HDFS-backed store keeps every row on the heap; the provider and the plan are fixed by the checkpoint, so this "
    "needs a new one",
    safe=False,
)


class Pressure(NamedTuple):
    """`cost` is the share of the batches' wall time; `seconds` of wall time in a batch."""

    share: float
    seconds: float
    cost: float


@once
def _pressure(view: QueryView) -> Pressure | None:
    stages = state_cost.gc_of_stages(view)
    if stages is None:
        return None
    newest = state_cost.newest_with_tasks(view)
    slots = batch_time.slots(view, max(stage.tasks for _, tasks in newest for stage in tasks.stages))
    seconds = stages.gc_seconds / slots / stages.batches
    return Pressure(stages.share, seconds, state_cost.gc_of_batches(view) or 0.0)


def check(view: QueryView) -> Iterator[Finding]:
    if view.last is None:
        return
    harmed = strain.strained(view) or overload.growth(view) is not None
    pressure = _pressure(view)
    least = MIN_GC_SHARE if harmed else SEVERE_GC_SHARE
    if pressure is None or pressure.share < least or pressure.seconds < MIN_SECONDS:
        return
    executors = state_cost.gc_of_executors(view)
    if (
        not state_cost.gc_goes_on(view)
        or pressure.cost < MIN_GC_SHARE
        or (executors is not None and executors.share < MIN_GC_SHARE)
    ):
        return
    small = pressure.cost * view.batches[-1].duration < MIN_GC_SHARE * (view.trigger.interval or 0.0)
    if not harmed and (executors is None or small):
        return
    at = state_cost.newest_with_tasks(view)[0][0].ended
    evidence = [
        Evidence("gc_share_of_stages", pressure.share, "ratio", f"< {MIN_GC_SHARE:g}", at),
        Evidence("gc_seconds_per_batch", pressure.seconds, "seconds", f"< {MIN_SECONDS:g}", at),
    ]
    if executors is not None:
        sampled_at = view.hosts[-1].at
        evidence.append(Evidence("gc_share_of_executors", executors.share, "ratio", f"< {MIN_GC_SHARE:g}", sampled_at))
    held, heap = sum(operator.memory_bytes for operator in view.last.operators), state_cost.heap_bytes(view)
    state = bool(heap) and not state_cost.off_heap(view) and held >= MIN_HEAP_SHARE * (heap or 0)
    what = ""
    if state and heap:
        evidence.append(Evidence("state_share_of_heap", held / heap, "ratio", f"< {MIN_HEAP_SHARE:g}", view.last.ended))
        what = f"; the state takes {held / 2**20:,.0f} MiB of a heap of {heap / 2**20:,.0f} MiB"
    yield Finding(
        f"tasks spend {pressure.share:.0%} of their time in garbage collection, {pressure.seconds:.1f} s per batch"
        f"{what}",
        Component("executor", "all", "heap"),
        tuple(evidence),
        (OFF_HEAP, MORE_MEMORY) if state else (MORE_MEMORY,),
        confidence=min(0.95, 0.6 + 0.5 * pressure.share + (0.1 if executors is not None else 0.0)),
        began=state_cost.newest_with_tasks(view)[-1][0].started,
        share=pressure.cost,
    )


def acquit(view: QueryView) -> str | None:
    pressure = _pressure(view)
    if pressure is None or pressure.share >= MIN_GC_SHARE:
        return None
    return f"garbage collection takes {pressure.share:.0%} of the tasks' time"


RULE = Rule(
    slug="gc-pressure",
    severity="warning",
    check=check,
    runbook=__doc__,
    explains=("falling-behind", "trigger-overrun", "cpu-saturated"),  # its threads take the cores, too
    acquit=acquit,
    linger=5.0,
    needs_harm=True,
)
