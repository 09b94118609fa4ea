"""Where the time of a batch goes: sink, Python, tasks, overhead, checkpoint."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from statistics import median

from tests.evidence.recompute.shared import (
    OVER,
    REMEMBERED,
    Formula,
    over_stages,
    phase,
    plain,
    python,
    total_of,
)
from tests.evidence.tape import Batch, Json, Tape, middle


def _trigger_batches(tape: Tape) -> list[Batch]:
    """The newest ten, or the newest in a row that outlast the interval where those ten are not mostly late."""
    newest = tape.steady[-10:]
    late = sum(map(tape.overran, newest)) + (_late_running(tape) is not None)
    if len(newest) == 10 and late >= 8:
        return newest
    row: list[Batch] = []
    for batch in reversed(newest):
        if not tape.overran(batch):
            break
        row.insert(0, batch)
    return row


def _newest_seconds(tape: Tape, finding: Json) -> float | None:
    newest = tape.steady[-3:]
    return middle(each.seconds for each in (newest if len(newest) == 3 else [b for b in tape.run if b.rows]))


def _without_rows(tape: Tape) -> float:
    """Where a line of the median slope between any two batches of unlike rows meets no rows."""
    whole = [batch for batch in tape.all if batch.run == tape.run_id][1:][-60:]
    points = [(batch.rows, batch.seconds) for batch in whole if batch.rows]
    pairs = [(a, b) for i, a in enumerate(points) for b in points[i + 1 :] if max(a[0], b[0]) >= 1.15 * min(a[0], b[0])]
    slope = median((b[1] - a[1]) / (b[0] - a[0]) for a, b in pairs)
    typical = middle(b.seconds for b in tape.late_with_tasks) or 0.0
    return min(typical, max(0.0, median(y - slope * x for x, y in points)))


def _saving(tape: Tape, finding: Json) -> float | None:
    """The share of the median of the newest three batches."""
    seconds = middle(batch.seconds for batch in tape.steady[-3:] or tape.run[-3:])
    return None if seconds is None else seconds * float(finding["share"])


def _late_running(tape: Tape) -> float | None:
    if tape.running is None:
        return None
    seconds = tape.now - tape.running[1]["since"]
    return float(seconds) if seconds > max(OVER * tape.interval, tape.interval + 1.0) else None


def _batch_median(tape: Tape, finding: Json) -> float | None:
    running = _late_running(tape)
    return middle([*(batch.seconds for batch in _trigger_batches(tape)), *([] if running is None else [running])])


def _settled_median(tape: Tape, finding: Json) -> float | None:
    whole = [batch for batch in tape.all if batch.run == tape.run_id]
    return middle(batch.seconds for batch in whole[1:][-REMEMBERED:])


def _phase_median(name: str) -> Formula:
    def of(tape: Tape, finding: Json) -> float | None:
        return middle(batch.phase(name) for batch in _trigger_batches(tape))

    return of


def _sink_window(tape: Tape) -> tuple[list[Batch], list[Batch], float]:
    found = _sink_split(tape, tape.steady)
    return found if len(_sink_firsts(*found[:2])) not in (1, 2) else _sink_split(tape, tape.without_first())


def _sink_split(tape: Tape, batches: Sequence[Batch]) -> tuple[list[Batch], list[Batch], float]:
    window = [batch for batch in batches if batch.start >= tape.now - 120][-60:]
    usual = median(batch.seconds for batch in window)
    rows = max(1.0, median(batch.rows for batch in window))
    slow = [
        batch
        for batch in window
        if batch.seconds > max(3 * usual, usual + 1.0, OVER * tape.interval)
        and batch.seconds > 2 * usual * max(1.0, batch.rows / rows)
    ]
    return window, slow, usual


def _sink_firsts(window: list[Batch], slow: list[Batch]) -> list[Batch]:
    at = {batch.id: place for place, batch in enumerate(window)}
    return [batch for batch in slow if at[batch.id] == 0 or window[at[batch.id] - 1] not in slow]


def _sink_spacing(tape: Tape, finding: Json) -> float | None:
    window, slow, _ = _sink_window(tape)
    return middle(later.start - earlier.start for earlier, later in pairwise(_sink_firsts(window, slow)))


def _sink_share(tape: Tape, finding: Json) -> float | None:
    window, slow, usual = _sink_window(tape)
    writing = median(batch.phase("addBatch") for batch in window)
    return middle((batch.phase("addBatch") - writing) / (batch.seconds - usual) for batch in slow)


def _slots(tape: Tape, stage: Json) -> float:
    return float(max(1, min(stage["tasks"], tape.cores or stage["tasks"])))


def _others(stage: Json) -> float:
    return float((stage["run_seconds"] - stage["seconds_max"]) / max(1, stage["tasks"] - 1))


def _lost(tape: Tape, stage: Json) -> float:
    other = _others(stage)
    even = max(other, (stage["run_seconds"] - stage["seconds_max"] + other) / _slots(tape, stage))
    return float(min(stage["seconds_max"], stage["ended"] - stage["started"]) - even)


def _straggling(tape: Tape, stages: Sequence[Json]) -> Json | None:
    def fair(stage: Json) -> bool:
        mean = (stage["records"] - stage["records_max"]) / (stage["tasks"] - 1)
        return bool(stage["records_max"] <= 1.5 * mean)

    several = [stage for stage in stages if stage["tasks"] > 1 and fair(stage)]
    return max(several, key=lambda stage: _lost(tape, stage), default=None)


def _of_straggler(value: Callable[[Tape, Json], float]) -> Formula:
    def of(tape: Tape, batch: Batch, stages: Sequence[Json]) -> float | None:
        stage = _straggling(tape, stages)
        return value(tape, stage) if stage is not None and _lost(tape, stage) > 0 else None

    return over_stages(of)


def _shares(tape: Tape) -> Mapping[str, tuple[float, float]]:
    """By executor: tasks and run seconds in those stages of the late batches that can be spread over all of them."""
    executors, found = len(_executor_cores(tape)), dict[str, tuple[float, float]]()
    for batch in tape.late_with_tasks:
        for stage in tape.stages(batch):
            if stage["tasks"] < executors:
                continue
            for name, share in stage["executors"].items():
                tasks, seconds = found.get(name, (0.0, 0.0))
                found[name] = (tasks + share["tasks"], seconds + share["run_seconds"])
    return found


def _executor_cores(tape: Tape) -> Mapping[str, int]:
    return {each["executor_id"]: each["cores"] for each in tape.executors}


def _busiest(tape: Tape) -> tuple[str, Mapping[str, tuple[float, float]], Mapping[str, int]]:
    shares, cores = _shares(tape), _executor_cores(tape)
    return max(shares, key=lambda name: shares[name][1] / max(1, cores.get(name, 1))), shares, cores


def _busiest_tasks(tape: Tape, finding: Json) -> float | None:
    name, shares, _ = _busiest(tape)
    return shares[name][0] / sum(tasks for tasks, _ in shares.values())


def _even_share(tape: Tape, finding: Json) -> float | None:
    name, _, cores = _busiest(tape)
    return cores[name] / sum(cores.values()) if name in cores else None


def _busiest_seconds(tape: Tape, finding: Json) -> float | None:
    name, shares, cores = _busiest(tape)
    return shares[name][1] / cores.get(name, 1) / len(tape.late_with_tasks)


def _even_seconds(tape: Tape, finding: Json) -> float | None:
    _, shares, cores = _busiest(tape)
    return sum(seconds for _, seconds in shares.values()) / sum(cores.values()) / len(tape.late_with_tasks)


def _slow_executor(tape: Tape, finding: Json, others: bool) -> float | None:
    shares = _shares(tape)
    told = f"{finding['component']['name']} {finding['component']['detail'] or ''}"
    name = next((each for each in shares if each in told.replace("executor", "").split()), None)
    chosen = [share for each, share in shares.items() if (each == name) is not others]
    tasks = sum(count for count, _ in chosen)
    return sum(seconds for _, seconds in chosen) / tasks if name is not None and tasks else None


def _tiny(tape: Tape, stages: Sequence[Json]) -> list[Json]:
    cores = tape.cores or 1
    return [
        stage
        for stage in stages
        if stage["tasks"] >= 10 * cores and stage["seconds_median"] <= 0.25 and stage["records"] < 500 * stage["tasks"]
    ]


def _of_tiny(value: Callable[[Tape, Batch, Sequence[Json]], float]) -> Formula:
    def of(tape: Tape, batch: Batch, stages: Sequence[Json]) -> float | None:
        tiny = _tiny(tape, stages)
        return value(tape, batch, tiny) if tiny else None

    return over_stages(of)


def _task_seconds(tape: Tape, batch: Batch, stages: Sequence[Json]) -> float:
    width = min(tape.cores or 1, max((stage["tasks"] for stage in stages), default=1))
    return min(batch.seconds, sum(max(stage["seconds_max"], stage["run_seconds"] / width) for stage in stages))


def _checkpoint(batch: Batch) -> float:
    return batch.phase("walCommit") + batch.phase("commitOffsets")


FORMULAS: Mapping[str, Formula] = {
    "slow_batches": plain(lambda tape: float(len(_sink_window(tape)[1]))),
    "batches": plain(lambda tape: float(len(_sink_window(tape)[0]))),
    "usual_batch_seconds": plain(lambda tape: _sink_window(tape)[2]),
    "slow_batch_excess_seconds": plain(
        lambda tape: middle(batch.seconds - _sink_window(tape)[2] for batch in _sink_window(tape)[1])
    ),
    "slow_batch_spacing_seconds": _sink_spacing,
    "add_batch_share_of_excess": _sink_share,
    "python_seconds": over_stages(lambda tape, batch, stages: python(tape, batch)),
    "python_share_of_task_time": over_stages(
        lambda tape, batch, stages: min(1.0, python(tape, batch) / total_of(stages, "run_seconds"))
    ),
    "task_cpu_share": over_stages(
        lambda tape, b, stages: total_of(stages, "cpu_seconds") / total_of(stages, "run_seconds")
    ),
    "stage_seconds": over_stages(lambda tape, batch, stages: tape.wall(batch)),
    "python_seconds_per_row": over_stages(
        lambda tape, batch, stages: python(tape, batch) / batch.rows if batch.rows else None
    ),
    "usual_python_seconds_per_row": plain(
        lambda tape: middle(python(tape, b) / b.rows for b in tape.with_tasks(batches=tape.usual) if b.rows)
    ),
    "slowest_task_seconds": _of_straggler(lambda tape, stage: float(stage["seconds_max"])),
    "other_tasks_seconds": _of_straggler(lambda tape, stage: _others(stage)),
    "lost_seconds": _of_straggler(_lost),
    "executor_task_seconds": lambda tape, finding: _slow_executor(tape, finding, others=False),
    "other_executors_task_seconds": lambda tape, finding: _slow_executor(tape, finding, others=True),
    "busiest_executor_task_share": _busiest_tasks,
    "even_share": _even_share,
    "busiest_executor_seconds": _busiest_seconds,
    "even_seconds": _even_seconds,
    "tasks": _of_tiny(lambda tape, batch, tiny: total_of(tiny, "tasks")),
    "tasks_per_core": _of_tiny(lambda tape, batch, tiny: total_of(tiny, "tasks") / (tape.cores or 1)),
    "task_seconds_median": _of_tiny(
        lambda tape, batch, tiny: float(max(tiny, key=lambda stage: stage["tasks"])["seconds_median"])
    ),
    "records_per_task": _of_tiny(lambda tape, batch, tiny: total_of(tiny, "records") / total_of(tiny, "tasks")),
    "tiny_task_stage_seconds": _of_tiny(
        lambda tape, batch, tiny: min(batch.seconds, sum(stage["ended"] - stage["started"] for stage in tiny))
    ),
    "task_seconds": over_stages(_task_seconds),
    "overhead_seconds": over_stages(lambda tape, batch, stages: batch.seconds - _task_seconds(tape, batch, stages)),
    "overhead_share": over_stages(
        lambda tape, batch, stages: 1 - _task_seconds(tape, batch, stages) / batch.seconds if batch.seconds else None
    ),
    "query_planning_seconds": phase("queryPlanning"),
    "rows_per_batch": over_stages(lambda tape, batch, stages: float(batch.rows)),
    "checkpoint_seconds_median": plain(lambda tape: middle(_checkpoint(batch) for batch in tape.steady[-3:])),
    "usual_checkpoint_seconds": plain(lambda tape: middle(_checkpoint(batch) for batch in tape.usual)),
    "checkpoint_share": plain(
        lambda tape: median(_checkpoint(b) for b in tape.steady[-3:]) / median(b.seconds for b in tape.steady[-3:])
    ),
    "trigger-overrun: batch_seconds_median": _batch_median,
    "long-batches: batch_seconds_median": _newest_seconds,
    "seconds_without_rows": plain(_without_rows),
    "without_rows_share": plain(
        lambda tape: _without_rows(tape) / (middle(b.seconds for b in tape.late_with_tasks) or 0)
    ),
    "saving_seconds": _saving,
    "query-stuck: batch_seconds_median": _settled_median,
    "add_batch_seconds_median": _phase_median("addBatch"),
    "query_planning_seconds_median": _phase_median("queryPlanning"),
    "latest_offset_seconds_median": _phase_median("latestOffset"),
    "wal_commit_seconds_median": _phase_median("walCommit"),
    "commit_offsets_seconds_median": _phase_median("commitOffsets"),
}
