"""Which stages of a batch read its rows again, and how long that takes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from statistics import median

from ledgerops.diagnosis.batch_parts import stage_time
from ledgerops.diagnosis.limits import NOISE_SHARE
from ledgerops.diagnosis.profile import Profile
from ledgerops.model.records import Progress, StageSummary, TaskSummary
from ledgerops.signals.query_view import QueryView


def repeats(batch: Progress, tasks: TaskSummary) -> Sequence[StageSummary]:
    """The stages that read all rows of the batch each; none where they may have read different ones.

    `limit`, `take` and `show` read partition after partition, each in a stage with a task of its own.
    """
    reading = [stage for stage in tasks.stages if stage.records > 0 and not stage.reads_shuffle]
    times = max((source.times_read for source in batch.sources), default=1)
    if times > 1:
        whole = [stage for stage in reading if abs(stage.records - batch.rows) <= NOISE_SHARE * batch.rows]
        return whole if len(whole) == times else []
    if len({stage.records for stage in reading}) != 1 or sum(stage.records for stage in reading) != batch.rows:
        return []
    tasks_alike = len({stage.tasks for stage in reading}) == 1 and reading[0].tasks > 1
    bytes_alike = len({stage.input_bytes for stage in reading}) == 1 and reading[0].input_bytes > 0
    return reading if tasks_alike or bytes_alike else []


def saved_seconds(view: QueryView, found: Profile) -> float:
    """Seconds of a typical batch in which its rows are read again: what the longest of the readings takes stays."""
    shares = []
    for batch in (each.batch for each in found.splits):
        tasks = view.history.tasks_of(batch)
        stages = repeats(batch, tasks) if tasks is not None else []
        at_work = stage_time(replace(tasks, stages=tuple(stages))) if tasks is not None else None
        longest = max((stage.wall_seconds or 0.0 for stage in stages), default=0.0)
        shares.append((at_work.seconds - longest) / batch.duration if at_work is not None else 0.0)
    return median(shares) * found.duration
