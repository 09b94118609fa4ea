"""The cost of a query's state and its growth, for the rules on state, memory and garbage collection.

Spark sums the times of a state operator over its tasks. Wall time is that sum over the tasks that run at once.
"""

from collections.abc import Sequence

from ledgerops.diagnosis.limits import LOOKBACK_BATCHES, SHOWN_BATCHES
from ledgerops.model.records import Host, Progress, StateOperator
from ledgerops.signals.memo import once
from ledgerops.signals.query_view import QueryView

TTL_VARIABLES = "WithTTLVars"  # end of the names of metrics that count them
# operators that keep time themselves, with timers, timeouts or a time to live
OWN_TIME_OPERATORS = ("transformWithState", "flatMapGroupsWithState", "mapGroupsWithState", "applyInPandasWithState")
RESERVED_BYTES = 300 * 2**20  # of a heap, which Spark keeps for itself (docs, "Memory Management Overview")
UNIFIED_MEMORY_SHARE = 0.6  # spark.memory.fraction: an executor's maxMemory is this share of the rest of the heap
# of the task time: Spark's executors page highlights more than that; Dr. Elephant calls it "moderate"
MIN_GC_SHARE = 0.10
GC_WINDOW_SECONDS = 30.0  # the newest four executor samples, at one every 10 s


def parallel_tasks(view: QueryView, operator: StateOperator) -> int:
    """How many tasks of an operator run at once: the divisor from task seconds to wall seconds."""
    tasks = operator.partitions or 1
    return max(1, min(tasks, view.cluster.cores or tasks))


def has_watermark(view: QueryView) -> bool:
    """Whether the query has a watermark, by its plan or by what its newest batches report."""
    if view.plan.watermarks:
        return True
    newest = view.batches[-2 * SHOWN_BATCHES :]
    return any(batch.watermark is not None or batch.event_time_max is not None for batch in newest)


def has_no_timeout(view: QueryView, operator: StateOperator) -> bool:
    """Whether the plan says that nothing but the user's function removes the operator's state."""
    return operator.name.split("-")[0] in view.plan.without_timeout


def has_no_time(view: QueryView, operator: StateOperator) -> bool:
    """Whether the plan says that the query's watermark does not reach the operator: none of its keys is an event time,
    or a join does not bound the time of its rows."""
    return has_watermark(view) and operator.name.split("-")[0] in view.plan.without_event_time


def keeps_all(view: QueryView, operator: StateOperator) -> bool:
    """Whether it is an aggregation in complete mode, of which each batch writes every group there ever was."""
    return view.plan.output_mode == "complete" and operator.name.startswith("stateStoreSave")


def watermark_bounds(view: QueryView, operator: StateOperator) -> bool:
    """Whether a watermark may remove the operator's state."""
    never = keeps_all(view, operator) or has_no_timeout(view, operator) or has_no_time(view, operator)
    if never or not has_watermark(view):
        return False
    return keeps_own_time(view, operator) or not is_function(operator)


def is_function(operator: StateOperator) -> bool:
    """Whether a function of the user's keeps the state, and says itself when a row of it ends."""
    return operator.name.startswith(OWN_TIME_OPERATORS)


def keeps_own_time(view: QueryView, operator: StateOperator) -> bool:
    """Whether an operator can forget by timers, timeouts or a time to live, if its metrics do not deny it."""
    if not is_function(operator) or has_no_timeout(view, operator):
        return False
    if _sets_time(operator) is not False:
        return True
    earlier = (each for batch in view.baseline.steady[-LOOKBACK_BATCHES:] for each in batch.operators)
    return any(_sets_time(each) for each in earlier if each.name == operator.name)  # without rows no timer is set


def lives(operator: StateOperator) -> bool:
    """Whether variables of an operator's state have a time to live, by its metrics."""
    return any(value for name, value in operator.custom.items() if name.endswith(TTL_VARIABLES))


def outlives(operator: StateOperator) -> bool:
    """Whether other variables of it have none."""
    return any(value for name, value in operator.custom.items() if name.endswith("StateVars"))


def _sets_time(operator: StateOperator) -> bool | None:
    """Whether an operator has timers or a time to live, by its metrics; None where these do not tell of both."""
    timers = [value for name, value in operator.custom.items() if "Timers" in name]
    told = any(name.endswith(TTL_VARIABLES) for name in operator.custom)
    return any(timers) or lives(operator) if timers and told else None


def heap_bytes(view: QueryView) -> int | None:
    """The heaps of all executors in bytes, as Spark divides them; None where unknown."""
    memory = [executor.memory_max_bytes for executor in view.cluster.executors]
    return int(sum(most / UNIFIED_MEMORY_SHARE + RESERVED_BYTES for most in memory)) if memory and all(memory) else None


def off_heap(view: QueryView) -> bool:
    """Whether the state is RocksDB's: native memory and local disk."""
    return any(name.startswith("rocksdb") for operator in view.operators for name in operator.custom)


@once
def gc_of_executors(view: QueryView) -> float | None:
    """Garbage collection as a share of the tasks' run time, 0 to 1: by how all executors' totals grew from the oldest
    sample of the last GC_WINDOW_SECONDS to the newest.

    In local mode there is only the driver, of which Spark reports its whole time in place of the tasks' (since 4.0).
    """
    recent = [host for host in view.hosts if host.at >= view.now - 2 * GC_WINDOW_SECONDS and host.workers]
    newest = max((host.at for host in recent), default=float("-inf"))
    samples = [host for host in recent if newest - GC_WINDOW_SECONDS <= host.at]
    if len(samples) < 2 or view.now - newest > GC_WINDOW_SECONDS:
        return None
    gc, run = (later - before for before, later in zip(_totals(samples[0]), _totals(samples[-1]), strict=True))
    return min(1.0, gc / run) if gc >= 0 and run > 0 else None


def _totals(host: Host) -> tuple[float, float]:
    return sum(each.gc_seconds for each in host.workers), sum(each.run_seconds for each in host.workers)


def reports(batches: Sequence[Progress], index: int) -> list[tuple[Progress, StateOperator]]:
    """The batches with what they say of one operator, by its place in the plan."""
    return [(batch, batch.operators[index]) for batch in batches if index < len(batch.operators)]
