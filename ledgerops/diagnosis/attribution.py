"""Where the wall time of a batch went: parts that add up to its duration, unattributed time included.

| part | seconds of wall time |
|---|---|
| `latest_offset`, `get_batch`, `query_planning`, `wal_commit`, `commit_offsets` | the phase of that name |
| `driver` | of `add_batch`: no task runs, before the last one has ended: planning, `foreachBatch`, starting jobs |
| `after_tasks` | of `add_batch`: what follows the end of the last stage: commits of the sink |
| `launch` | of `add_batch`: a stage is at work, and its tasks are not: starting them, collecting results |
| `python`, `gc`, `state_commit`, `state_update`, `shuffle`, `cpu`, `waiting` | of `add_batch`: a stage is at work |
| `tasks_unknown` | all of `add_batch`, when its tasks were not sampled, or not those of all its stages |
| `unclaimed` | the duration less all phases |

While stages are at work (`batch_time.stage_time`: W seconds of wall time, at most `add_batch`), tasks run for R seconds
in sum. `launch` is what a stage takes longer than its tasks need on the cores in the worst order: as long as its
longest task where all run at once, else (R - longest) / cores + longest; it is absent where the cores are not known.
R is shared out in this order, each part taking at most what is left; a part's wall time is its share of R times
(W - launch).

1. `python`: `python_seconds`, Spark's "time to run Python workers"; absent where Spark reports none.
2. `gc`: the sum of the stages' `gc_seconds`.
3. `state_commit`: the sum of the operators' `commitTimeMs`.
4. `state_update`: the sum of their `allUpdatesTimeMs` and `allRemovalsTimeMs`; where the operator itself runs Python,
   less `python`, which these times contain. Spark counts the rows' way to the operator in, so it is an upper bound.
5. `shuffle`: the sum of the stages' waits for blocks and of the writing of blocks; absent where it was not recorded.
6. `cpu`: the sum of the stages' `cpu_seconds` beyond that of `state_update`, which is taken to compute.
7. `waiting`: the rest: tasks that neither compute nor say what they do, such as I/O, locks, and a busy machine.

Phases that were measured longer than the batch, by rounding, are scaled to it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from statistics import median
from typing import Any

from ledgerops.diagnosis import batch_time
from ledgerops.model.finding import Part
from ledgerops.model.records import Progress, TaskSummary
from ledgerops.signals.memo import once
from ledgerops.signals.query_view import QueryView

PHASES = ("latest_offset", "get_batch", "query_planning", "wal_commit", "commit_offsets")
OUTSIDE = ("driver", "after_tasks")
INSIDE = ("launch", "python", "gc", "state_commit", "state_update", "shuffle", "cpu", "waiting")
PARTS = (*PHASES, *OUTSIDE, *INSIDE, "tasks_unknown", "unclaimed")
PYTHON_OPERATORS = ("pandas", "pyspark", "python")  # in the names of state operators that run Python
DIGITS = 6


@once
def attribution(view: QueryView) -> tuple[Part, ...]:
    """The parts of a typical batch, in the order of PARTS: of the newest settled batches with rows, medians.

    These are the newest batches whose tasks are known (`batch_time.pairs`, at least two), else the newest five without
    tasks. A part's share is the median of its shares in the batches, scaled so that all add up to 1; its seconds are
    that share of the median duration. Empty before there is such a batch.
    """
    known = [(batch, tasks) for batch, tasks in batch_time.pairs(view) if batch.rows > 0]
    chosen: Sequence[tuple[Progress, TaskSummary | None]] = known
    if len(known) < batch_time.needed(view):
        with_rows = [batch for batch in view.baseline.settled[-2 * batch_time.MAX_PAIRS :] if batch.rows > 0]
        chosen = [(batch, None) for batch in with_rows[-batch_time.MAX_PAIRS :]]
    cores = view.cluster.cores
    split = [(batch.duration, parts_of(batch, tasks, cores)) for batch, tasks in chosen if batch.duration > 0]
    if not split:
        return ()
    shares = {
        part: median(parts.get(part, 0.0) / duration for duration, parts in split)
        for part in PARTS
        if any(part in parts for _, parts in split)
    }
    total = sum(shares.values())
    duration = median(duration for duration, _ in split)
    if total <= 0:
        return ()
    return tuple(Part(part, share / total * duration, share / total) for part, share in shares.items())


def parts_of(batch: Progress, tasks: TaskSummary | None, cores: int | None = None) -> dict[str, float]:
    """Seconds of wall time by part; together the batch's duration. A part of which nothing is known is absent."""
    claimed = {phase: max(0.0, batch.phases[phase]) for phase in (*PHASES, "add_batch") if phase in batch.phases}
    total = sum(claimed.values())
    if total > batch.duration:
        claimed = {phase: seconds * batch.duration / total for phase, seconds in claimed.items()}
    unclaimed = max(0.0, batch.duration - sum(claimed.values()))
    adding = claimed.pop("add_batch", None)
    parts = claimed
    if adding is not None:
        parts |= _adding(batch, tasks, adding, cores)
    return parts | {"unclaimed": unclaimed}


def _adding(batch: Progress, tasks: TaskSummary | None, adding: float, cores: int | None) -> dict[str, float]:
    """The parts of `add_batch`, which took `adding` seconds, as far as its tasks are known."""
    split = batch_time.split_add_batch(batch, tasks, adding) if tasks is not None else None
    if tasks is None or split is None:
        return {"tasks_unknown": adding}
    busy, outside, after = split
    parts = {"driver": outside - after, "after_tasks": after}
    if cores:
        parts["launch"] = _launch(tasks, cores, busy)
    return parts | _inside(batch, tasks, busy - parts.get("launch", 0.0))


def _launch(tasks: TaskSummary, cores: int, busy: float) -> float:
    """The seconds in which stages run that their tasks do not account for."""
    walls = sum(stage.wall_seconds or 0.0 for stage in tasks.stages)
    idle = 0.0
    for stage in tasks.stages:
        longest, ran = stage.seconds_max, stage.run_seconds
        needed = longest if stage.tasks <= cores else (ran - longest) / cores + longest
        idle += max(0.0, (stage.wall_seconds or 0.0) - needed)
    return idle / walls * busy if walls > 0 else 0.0


def _inside(batch: Progress, tasks: TaskSummary, wall: float) -> dict[str, float]:
    """The `wall` seconds in which stages ran, by what their tasks did."""
    left = ran = tasks.run_seconds
    if ran <= 0:
        return {"waiting": wall}
    python = min(tasks.python_seconds or 0.0, ran)
    update = sum(each.update_seconds + each.removal_seconds for each in batch.operators)
    if any(sign in each.name.lower() for each in batch.operators for sign in PYTHON_OPERATORS):
        update = max(0.0, update - python)
    wanted = {"python": python} if tasks.python_seconds is not None else {}
    wanted["gc"] = tasks.gc_seconds
    if batch.operators:
        wanted["state_commit"] = sum(each.commit_seconds for each in batch.operators)
        wanted["state_update"] = update
    shuffled = [stage.shuffle_seconds for stage in tasks.stages if stage.shuffle_seconds is not None]
    if shuffled:
        wanted["shuffle"] = sum(shuffled)
    wanted["cpu"] = tasks.cpu_seconds - (update if batch.operators else 0.0)
    found = {}
    for part, seconds in wanted.items():
        found[part] = min(max(0.0, seconds), left)
        left -= found[part]
    found["waiting"] = left
    return {part: seconds / ran * wall for part, seconds in found.items()}


def as_document(parts: Iterable[Part]) -> list[Mapping[str, Any]]:
    """The parts as the diagnosis document has them: seconds and share of the batch's duration."""
    return [
        {"part": each.part, "seconds": round(each.seconds, DIGITS), "share": round(each.share, DIGITS)}
        for each in parts
    ]
