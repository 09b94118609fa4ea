"""Executor lost: an executor died or was replaced while the query ran.

Meaning: Spark removed an executor that had not been released. Its tasks run again elsewhere, its cached blocks and
    shuffle files are gone, and other executors load its state stores from the checkpoint.
Impact: the batch at that moment takes longer, often much longer. While cores are missing, all batches do. If executors
    are lost again and again, batches may never end.
Diagnosis: 1. Read the reason in the finding. "Container killed", "exit code 137" or "OutOfMemory" means too little
    memory: see `memory-spill` and `gc-pressure`. "heartbeat" or "lost" means that the machine or the network was
    unreachable.
    2. Compare `sum(ledgerops_executor_cores{app="APP"})` with the cores that the application asked for. If it is lower,
    no replacement has started yet.
    3. On the page of the cluster manager, check whether other applications lost executors on the same machine. If they
    did, the machine is the cause.
Mitigation: let the query continue: Spark repeats the lost tasks. If executors run out of memory, raise
    `spark.executor.memoryOverhead` at the next start (Python workers and RocksDB use that memory). If it is always the
    same machine, take it out of the cluster.
Evidence:
    executors_lost: executors in the newest sample of the host that were removed in the last 300 s; those that are idle,
        killed by the driver or decommissioned do not count
    seconds_since_executor_lost: now - the newest removed_at of these
    failed_tasks_of_lost_executors: sum of their failed_tasks
"""

from collections.abc import Iterator

from ledgerops.diagnosis.facts.lost_executors import FRESH_SECONDS, lost_executors, slower_since
from ledgerops.diagnosis.rule import Rule
from ledgerops.metrics.first_steps import GENERAL, first_step
from ledgerops.model.finding import Component, Evidence, Finding, Remedy
from ledgerops.model.records import RemovedExecutor
from ledgerops.signals.query_view import QueryView

MEMORY = ("137", "outofmemory", "out of memory", "memory limit", "oom")
MEMORY_REMEDY = first_step(
    "executor-lost", "memory", "the reason names memory; Python workers and RocksDB use memory outside the heap"
)


def check(view: QueryView) -> Iterator[Finding]:
    lost = lost_executors(view)
    if not lost or view.last is None:
        return
    newest = lost[-1]
    reason = newest.reason or "no reason is reported"
    which = ", ".join(dict.fromkeys(map(_where, lost)))
    by_memory = any(sign in reason.lower() for sign in MEMORY)
    yield Finding(
        f"{len(lost)} {'executor was' if len(lost) == 1 else 'executors were'} lost in the last "
        f"{FRESH_SECONDS / 60:.0f} min ({which}): {reason}",
        Component("executor", "lost executors", f"{_where(newest)}: {reason}"),
        (
            Evidence("executors_lost", float(len(lost)), "count", "0", view.now),
            Evidence("seconds_since_executor_lost", view.now - newest.removed_at, "seconds", "none lost", view.now),
            Evidence(
                "failed_tasks_of_lost_executors", float(sum(each.failed_tasks for each in lost)), "count", "0", view.now
            ),
        ),
        (MEMORY_REMEDY if by_memory else _check_machine(newest.host),),
        confidence=min(0.95, 0.6 + 0.1 * len(lost)),
        began=lost[0].removed_at,
        share=slower_since(view, lost[0].removed_at),
    )


def _where(executor: RemovedExecutor) -> str:
    return f"{executor.executor_id} on {executor.host}" if executor.host else executor.executor_id


def _check_machine(host: str | None) -> Remedy:
    return first_step(
        "executor-lost",
        GENERAL,
        "Spark repeats the lost tasks; a machine that does not come back must be replaced",
        executor=f"the executor, {host}," if host else "the executor",
    )


def ruled_out(view: QueryView) -> str | None:
    known = any(len(host.workers) > 1 for host in view.hosts)
    return "no executor was lost in the last 5 min" if known and not lost_executors(view) else None


RULE = Rule(
    slug="executor-lost",
    severity="warning",
    check=check,
    runbook=__doc__,
    explains=("falling-behind", "trigger-overrun", "query-stuck", "small-batch-overhead", "task-retries"),
    ruled_out=ruled_out,
    linger=30.0,
    needs_harm=True,
)
