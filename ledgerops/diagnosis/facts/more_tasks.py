"""The steps of a query that has more work than it can do: less work, or more of it at once."""

from math import ceil

from ledgerops.common.format import counted
from ledgerops.diagnosis.facts import growth
from ledgerops.diagnosis.facts.context import keeps_shuffle_partitions, sink_kind
from ledgerops.diagnosis.facts.state_room import larger_rows
from ledgerops.diagnosis.limits import MOSTLY, VERY_FAR_TIMES
from ledgerops.diagnosis.profile import FIXED, OF_FUNCTION, Profile, profile
from ledgerops.metrics.first_steps import GENERAL, first_step
from ledgerops.model.finding import CORES, REPARTITION, SHUFFLE, Remedy, Setting
from ledgerops.model.records import StageSummary
from ledgerops.signals.baseline import MORE_RATIO
from ledgerops.signals.query_view import QueryView
from ledgerops.signals.rate_cap import ROOM_SHARE
from ledgerops.signals.rates import read_over

WAITING = ("waiting", "source_wait", "sink_wait")  # parts in which tasks do nothing
NO_CPU = "its tasks wait, so they need slots (spark.executor.cores) and no more CPU"
WORK = ("python", "state_update", "shuffle", "spill", "cpu")  # tasks that do something for their rows


def tasks_at_once(view: QueryView) -> int | None:
    """How many tasks of the longest stage run at a time; None where tasks or cores are not known."""
    cores, tasks = view.cluster.cores, _tasks(view)
    return min(cores, tasks) if cores and tasks else None


def tasks_wait(view: QueryView) -> bool:
    """Whether most of a typical batch passes in tasks that wait: then the cores that there are have room."""
    found = profile(view)
    return found is not None and found.now(*WAITING) >= MOSTLY * found.duration


def overload_steps(view: QueryView, batch_seconds: float, dearer: bool = False) -> tuple[Remedy, ...]:
    """Where the work comes from, and what lets more of it run at once. `batch_seconds`: see `more_tasks`. `dearer`: a
    row is more work than it used to be. Of a query that was too slow from its start, nobody sends more than usual."""
    made, cores, tasks = view.plan.rows_made, view.cluster.cores, _tasks(view)
    found = profile(view)
    alone = found.now(*OF_FUNCTION, "driver_waits", "after_tasks") if found is not None else 0.0
    in_function = found is not None and sink_kind(view) == "foreach_batch" and alone >= MOSTLY * found.duration
    why = "no task runs for most of a batch, so more tasks do not help"
    more = first_step("input-overload", "driver", why) if in_function else more_tasks(view, batch_seconds)
    if made >= VERY_FAR_TIMES:
        why = "each row is in as many windows, or grouping sets, and costs as much as so many rows"
        return first_step("input-overload", "expand", why, number=str(made)), more
    if dearer and larger_rows(view) is not None:
        return first_step("input-overload", "state", "a batch reads and writes them whole, however few rows come"), more
    if dearer:
        return first_step("input-overload", "dearer", "more rows do not explain the work"), more
    if in_function:
        return (more,)
    if not view.baseline.usual and cores and tasks and tasks < cores:
        return first_step("input-overload", "few tasks", _few(tasks, cores)), more
    if not is_its_rows(view):
        return first_step(
            "input-overload", "unproven", "a batch that is slow for another reason falls behind, too"
        ), more
    return first_step("input-overload", GENERAL, "fewer rows or more tasks at once help"), more


def is_its_rows(view: QueryView) -> bool:
    """Whether a query that falls behind has too many rows: it kept up before, or most of a batch is work on them."""
    found = profile(view)
    return bool(view.baseline.usual) or (found is not None and work_on_rows(view, found)[0] >= MOSTLY)


def more_tasks(view: QueryView, batch_seconds: float, waits: bool = False) -> Remedy:
    """Enough tasks at once for the rows that arrive, with room to spare.

    As many times those of now as rows arrive faster than they are processed: a batch that outlasts its interval also
    has the rows of the time that it took, so its length says nothing. Where no rates are known, `batch_seconds` over
    the interval has to do. For its rows a batch has what its fixed cost leaves of the interval. Cores help only as far
    as the longest stage has tasks for them: with fewer, its rows must be divided first. Tasks that wait (`waits`, or by
    the profile) need no more cores, but slots to run in.
    """
    waits = waits or tasks_wait(view)
    cores, tasks, at_once = view.cluster.cores, _tasks(view), tasks_at_once(view)
    if tasks is None or at_once is None:
        partitions = len(view.lag.backlog_by_partition)
        action = f"add cores, up to {partitions} for this source" if partitions > 1 else "add cores"
        action += ", if its tasks use those that they have"
        return Remedy(action, "each source partition is read by one task at a time", safe=False)
    load, interval = growth.load(view), view.trigger.interval or batch_seconds
    overload = (load.ratio if load is not None else None) or batch_seconds / interval
    found, for_rows = profile(view), 1.0
    if found is not None and view.trigger.interval:  # at least half, as tasks are no cure for a cost that is fixed
        for_rows = max(1 - MOSTLY, 1 - found.now(*FIXED) / view.trigger.interval)
    needed = max(at_once + 1, ceil(at_once * max(1.0, overload) / (ROOM_SHARE * for_rows)))
    settings = (Setting(CORES, max(needed, cores or 0)),) if needed > (cores or 0) else ()
    if tasks >= needed:
        why = f"{at_once} of the {tasks} tasks of the longest stage run at once"
        more = f"let {needed} tasks run at once" if waits else f"give the application {needed} cores"
        return Remedy(more, f"{why}; {NO_CPU}" if waits else why, safe=False, settings=settings)
    divide, setting = _divided(view, needed)
    slots = f" and let {needed} run at once" if waits else f" and give the application {needed} cores"
    return Remedy(
        f"{divide}{slots}" if settings else divide,
        f"{NO_CPU}; " * waits + _few(tasks, cores or 0),
        safe=False,
        settings=(Setting(setting, needed), *settings),
    )


def _divided(view: QueryView, tasks: int) -> tuple[str, str]:
    """How the rows of the longest stage come to have so many tasks, and the setting of it."""
    stage = _longest(view)
    if stage is None or not stage.reads_shuffle:
        return f"divide the rows among {tasks} tasks (source partitions, minPartitions or repartition)", REPARTITION
    if any(operator.shuffle_partitions == stage.tasks for operator in view.operators):
        return f"give the state {tasks} partitions (new checkpoint; RocksDB from Spark 4.2 on: repartition it)", SHUFFLE
    given_by_setting = view.plan.shuffle_partitions in (None, stage.tasks)
    if keeps_shuffle_partitions(view) or not given_by_setting:
        return f"divide the rows among {tasks} tasks (repartition, by the key of a join)", REPARTITION
    return f"raise {SHUFFLE} to {tasks}", SHUFFLE


def _few(tasks: int, cores: int) -> str:
    return f"the longest stage has {counted(tasks, 'task')} for {counted(cores, 'core')}"


def _tasks(view: QueryView) -> int | None:
    """The number of tasks of the longest stage of the newest batch."""
    longest = _longest(view)
    return longest.tasks if longest is not None else None


def _longest(view: QueryView) -> StageSummary | None:
    found = profile(view)
    stages = [each.stage for each in found.splits[-1].stages] if found is not None else []
    return max(stages, key=lambda stage: stage.wall_seconds or 0.0, default=None)


def work_on_rows(view: QueryView, found: Profile) -> tuple[float, bool]:
    """The work on the rows as a share of a typical batch, 0 to 1, and whether each row is more work than before.

    Where clearly more rows a second than usual explain the work, it counts whole; else what it takes beyond the usual.
    """
    excess = sum(found.parts[name].excess for name in WORK if name in found.parts) / found.duration
    dearer = found.has_past and excess >= MOSTLY
    share = found.now(*WORK) / found.duration if _more_come(view) and not dearer else excess
    return share, dearer or larger_rows(view) is not None


def more_rows_need(view: QueryView, found: Profile) -> float:
    """What so many more rows a second than usual need, as a share of a typical batch, 0 to 1, whatever each of them
    takes: it may be a wait for a service. 0 where clearly no more come."""
    return sum(part.more for part in found.parts.values()) / found.duration if _more_come(view) else 0.0


def _more_come(view: QueryView) -> bool:
    now, usual = read_over(view.baseline.recent), read_over(view.baseline.usual)
    return now is not None and usual is not None and now > MORE_RATIO * usual
