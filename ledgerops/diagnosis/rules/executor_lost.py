"""Executor lost: an executor died or was replaced while the query ran.

Meaning: Spark removed an executor that had not been released. Its tasks run again elsewhere, its cached blocks and
    shuffle files are gone, and other executors load its state stores from the checkpoint.
Impact: the batch at that moment takes longer, often much longer. While cores are missing, all batches do. If executors
    are lost again and again, batches may never end.
Diagnosis: 1. Read the reason in the finding. "OutOfMemory", "OOMKilled" or "memory limits" means too little memory: see
    `memory-spill` and `gc-pressure`. Exit code 52 means that its heap is full, 137 is SIGKILL, which is most often for
    memory, too. "heartbeat" or "lost" means that the machine or the network was unreachable; "decommission", that its
    machine is taken away, as a spot instance is.
    2. Compare `sum(ledgerops_executor_cores{app="APP"})` with the cores that the application asked for. If it is lower,
    no replacement has started yet.
    3. On the page of the cluster manager, check whether other applications lost executors on the same machine. If they
    did, the machine is the cause.
Mitigation: let the query continue: Spark repeats the lost tasks. If executors run out of memory, raise
    `spark.executor.memoryOverhead` at the next start (Python workers and RocksDB use that memory), or of a full heap
    `spark.executor.memory`. If it is always the same machine, take it out of the cluster.
Evidence:
    executors_lost: executors in the newest sample of the host that were removed in the last 300 s; those that are idle,
        killed by the driver, released by dynamic allocation ("spark scale down") or rolled do not count
    seconds_since_executor_lost: now - the newest removed_at of these
    failed_tasks_of_lost_executors: sum of their failed_tasks
"""

import re
from collections.abc import Iterator, Sequence
from statistics import median

from ledgerops.diagnosis.rule import LATE, Rule
from ledgerops.metrics.first_steps import GENERAL, first_step
from ledgerops.model.finding import Component, Evidence, Finding
from ledgerops.model.records import RemovedExecutor
from ledgerops.signals.baseline import MIN_DURATIONS
from ledgerops.signals.query_view import QueryView

# a host may be named oom-1, and Spark on Kubernetes explains any exit code 137 as a "possible container OOM"
MEMORY = re.compile(r"OutOfMemory|(?<!possible container )\bOOM(Killed)?\b|(?i:out of memory|memory limit)")
CODE = r"(?i:code|status)\D{1,4}%s\b"  # "code 137", "code is 137", "status: 137"; not a port or an id
SIGKILL = re.compile(CODE % 137)
HEARTBEAT = re.compile(r"heartbeat timed out after (\d+) ms")
HEAP = re.compile(rf"{CODE % 52}|OutOfMemoryError: (Java heap|GC overhead)")  # SparkExitCode.OOM is 52
OUTSIDE_HEAP = "Python workers and RocksDB use memory outside the heap"
REPLACE = "Spark repeats the lost tasks; a machine that does not come back must be replaced"
FRESH_SECONDS = 300.0  # after which a replaced executor no longer explains the batch time
# in the reasons of executors that were let go
RELEASED = ("idle", "killed by driver", "spark scale down", "requested", "rolling via")


def check(view: QueryView) -> Iterator[Finding]:
    lost = _lost(view)
    if not lost or view.last is None:
        return
    newest = lost[-1]
    reason = newest.reason or "no reason is reported"
    which = ", ".join(dict.fromkeys(map(_where, lost)))
    failed = sum(each.failed_tasks for each in lost)
    machine = f"the executor, {newest.host}," if newest.host else "the executor"
    step = first_step("executor-lost", GENERAL, REPLACE, executor=machine)
    if HEAP.search(reason):
        step = first_step("executor-lost", "heap", "Spark ends an executor whose heap is full, with exit code 52")
    elif MEMORY.search(reason):
        step = first_step("executor-lost", "memory", f"the reason names memory; {OUTSIDE_HEAP}")
    elif SIGKILL.search(reason):
        step = first_step("executor-lost", "memory", f"exit code 137 is SIGKILL, often for memory; {OUTSIDE_HEAP}")
    yield Finding(
        f"{len(lost)} {'executor was' if len(lost) == 1 else 'executors were'} lost in the last "
        f"{FRESH_SECONDS / 60:.0f} min ({which}): {reason}",
        Component("executor", "lost executors", f"{_where(newest)}: {reason}"),
        (
            Evidence("executors_lost", float(len(lost)), "count", "0", view.now),
            Evidence("seconds_since_executor_lost", view.now - newest.removed_at, "seconds", "none lost", view.now),
            Evidence("failed_tasks_of_lost_executors", float(failed), "count", "0", view.now),
        ),
        (step,),
        confidence=min(0.95, 0.6 + 0.1 * len(lost)),
        began=min(map(_silent_since, lost)),
        share=_slower_since(view, lost[0].removed_at),
    )


def _where(executor: RemovedExecutor) -> str:
    return f"{executor.executor_id} on {executor.host}" if executor.host else executor.executor_id


def _silent_since(executor: RemovedExecutor) -> float:
    """When it was last heard of: the driver removes one that hangs after the milliseconds that it then tells."""
    waited = HEARTBEAT.search(executor.reason or "")
    return executor.removed_at - (int(waited[1]) / 1000 if waited else 0.0)


def ruled_out(view: QueryView) -> str | None:
    known = any(len(host.workers) > 1 for host in view.hosts)
    return "no executor was lost in the last 5 min" if known and not _lost(view) else None


def _slower_since(view: QueryView, since: float) -> float | None:
    """By what share the longest batch since the loss exceeds the median of those before; None with fewer than three."""
    before = [batch.duration for batch in view.batches if batch.ended < since][-MIN_DURATIONS * 2 :]
    after = [batch.duration for batch in view.batches if batch.ended >= since] + [view.run.unfinished_seconds or 0.0]
    if len(before) < MIN_DURATIONS or max(after) <= 0:
        return None
    return max(0.0, 1 - median(before) / max(after))


def _lost(view: QueryView) -> Sequence[RemovedExecutor]:
    """The executors that died lately, oldest first; while this run was on."""
    newest = next((host for host in reversed(view.hosts) if host.removed_executors), None)
    since = max(view.now - FRESH_SECONDS, view.history.started_at or 0.0)
    return [
        each
        for each in (newest.removed_executors if newest is not None else ())
        if since <= each.removed_at <= view.now and not any(sign in (each.reason or "").lower() for sign in RELEASED)
    ]


EXPLAINS = (*LATE, "query-stuck", "scheduler-skew", "small-batch-overhead", "task-retries")
RULE = Rule("executor-lost", "warning", check, __doc__, EXPLAINS, ruled_out, linger=30.0, needs_harm=True)
