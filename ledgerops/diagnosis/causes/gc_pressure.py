"""GC pressure: garbage collection stops the tasks for much of their time.

Meaning: long-lived objects nearly fill the heap (state of the HDFS-backed store, caches, broadcasts), or tasks create
    garbage faster than it can be collected. The collector runs again and again, and all tasks wait for it.
Impact: every batch takes longer, and the query falls behind. Executors may soon be lost with an OutOfMemoryError.
Diagnosis: 1. Divide `rate(ledgerops_executor_gc_seconds_total{app="APP"}[5m])` by
    `rate(ledgerops_executor_run_seconds_total{app="APP"}[5m])`: the share of run time by executor. If one executor is
    far above the others, it holds more data: see `key-skew`.
    2. If `ledgerops_state_memory_bytes{app="APP",query="QUERY"}` is a large part of the heap, the state fills it: see
    `state-growth` and `unbounded-state`.
    3. If `sum(ledgerops_executor_storage_memory_bytes{app="APP"})` is near
    `sum(ledgerops_executor_storage_memory_max_bytes{app="APP"})`, persisted data fills it: a function of `foreachBatch`
    that calls `cache()` and never `unpersist()` keeps every batch. Page "Storage" of the Spark UI lists them.
    4. Otherwise `jcmd PID GC.class_histogram` on the executor shows which objects fill it. Several queries of one
    driver share its heaps.
Mitigation: unpersist what is not needed. Give the executors more memory or fewer cores each; this needs only a restart.
    Then bound the state with a watermark or a time to live, or keep it in RocksDB, off the heap. The checkpoint fixes
    the state store provider, so changing it needs a new checkpoint.
"""

from math import ceil

from ledgerops.diagnosis.cause import Cause, Told
from ledgerops.diagnosis.facts import persisted
from ledgerops.diagnosis.facts.state_cost import MIN_GC_SHARE, heap_bytes, off_heap
from ledgerops.diagnosis.profile import Profile
from ledgerops.diagnosis.rule import LATE
from ledgerops.metrics.first_steps import GENERAL, first_step
from ledgerops.model.finding import Component, Evidence, Remedy, Setting
from ledgerops.signals.query_view import QueryView

# share of the heap from which state is worth naming as what fills it: Spark samples what a store holds, and reported a
# quarter of it where values were large
MIN_HEAP_SHARE = 0.1
OFF_HEAP = Remedy(
    "keep the state in RocksDB, off the heap, or bound it with a watermark or a time to live",
    "the HDFS-backed store keeps every row on the heap; the provider and the plan are fixed by the checkpoint, so this "
    "needs a new one",
    safe=False,
)
LOOK = first_step("gc-pressure", GENERAL, "what stays there fills it")
UNPERSIST = first_step("gc-pressure", "cache", "what is persisted stays, also of earlier batches")


def _more_memory(view: QueryView) -> Remedy:
    """Twice the heap of an executor; in local mode the tasks run in the driver's."""
    heap, executors = heap_bytes(view), view.cluster.executors
    name = "spark.driver.memory" if view.cluster.is_local else "spark.executor.memory"
    enough = f"{ceil(2 * heap / len(executors) / 2**20 / 100) * 100}m" if heap else None
    return Remedy(
        f"set {name} to {enough}" if enough else f"raise {name}",
        "the collector then runs less often; this needs a restart",
        safe=False,
        settings=(Setting(name, enough),),
    )


def _tell(view: QueryView, found: Profile) -> Told:
    component, more = Component("executor", "all", "heap"), _more_memory(view)
    heap, held = heap_bytes(view), sum(each.memory_bytes for each in view.operators)
    if not heap or off_heap(view) or held < MIN_HEAP_SHARE * heap:
        cached = persisted.persisted(view)
        if cached is None:
            return Told(component, (LOOK, more), {"why": ""})
        return Told(component, (UNPERSIST, more), {"why": cached.clause}, (cached.evidence,))
    rows = first_step("gc-pressure", "state", f"state takes {held / heap:.0%} of the heap")
    filled = Evidence("state_share_of_heap", held / heap, "ratio", f"< {MIN_HEAP_SHARE:g}", found.at)
    return Told(component, (rows, OFF_HEAP, more), {"why": ""}, (filled,))


CAUSE = Cause(
    slug="gc-pressure",
    runbook=__doc__,
    parts=("gc",),
    min_share=MIN_GC_SHARE,  # of the batch: Spark's executors page highlights more than that
    happened="garbage collection takes {seconds} of a batch of {batch}{why}",
    # its threads take the cores, too, and a JVM that collects does not answer the collectors
    explains=("query-stuck", *LATE, "cpu-saturated", "observer-degraded"),
    formulas={
        "state_share_of_heap": "memoryUsedBytes of all state operators of the newest batch, divided by the heaps of "
        "all executors (maxMemory / 0.6 + 300 MiB each)",
        "persisted_share_of_memory": persisted.FORMULA,
    },
    tell=_tell,
)
