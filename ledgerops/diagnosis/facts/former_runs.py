"""The runs of a query that ends by itself and is started again and again, by a scheduler: how long, and how often."""

from collections.abc import Sequence
from itertools import pairwise
from statistics import median
from typing import NamedTuple

from ledgerops.diagnosis.facts.failures import RESTARTED_SECONDS
from ledgerops.diagnosis.limits import MOSTLY, NOISE_SHARE
from ledgerops.model.history import MAX_BATCHES
from ledgerops.model.records import Progress
from ledgerops.signals.baseline import CHANGED_RATIO, OVER_RATIO
from ledgerops.signals.memo import once
from ledgerops.signals.query_view import QueryView
from ledgerops.signals.trigger import MIN_RUNS


class FormerRun(NamedTuple):
    """When its first batch began, the seconds from then to its end, and its rows."""

    began: float
    seconds: float
    rows: int


class LateRun(NamedTuple):
    """The present run so far, where it outlasts the `period` in which runs usually begin and its rows do not explain
    that. `usual` are the seconds that as many rows usually take."""

    began: float
    seconds: float
    period: float
    usual: float


@once
def former_runs(view: QueryView) -> Sequence[FormerRun]:
    """Those before the present one that ended by themselves, oldest first; none before there are MIN_RUNS."""
    if not view.plan.ends_itself and (view.plan.trigger is not None or not view.trigger.ends_itself):
        return []
    batches, by_run = view.history.batches, dict[str, list[Progress]]()
    for batch in batches:
        by_run.setdefault(batch.run_id, []).append(batch)
    if len(batches) == MAX_BATCHES:
        del by_run[batches[0].run_id]  # its first batches are no longer remembered
    by_run.pop(view.history.run_id or "", None)
    found = [
        FormerRun(run[0].started, end.at - run[0].started, sum(batch.rows for batch in run))
        for end in view.history.ends
        if end.exception is None and not (end.lost or end.unwatched or end.with_application)
        if (run := by_run.get(end.run_id))
    ]
    return found if len(found) >= MIN_RUNS else []


@once
def usual_run(view: QueryView) -> float | None:
    """Seconds of a usual run, or of one that reads what came in a longer time; None without a past."""
    runs, began = former_runs(view), view.history.started_at
    if not runs or began is None:
        return None
    pauses = median(later.began - earlier.began for earlier, later in pairwise(runs))
    return median(run.seconds for run in runs) * max(1.0, (began - runs[-1].began) / pauses)


@once
def late_run(view: QueryView) -> LateRun | None:
    """None where the runs began at no regular times: then nobody waits for the next. Nor where they began soon
    after the one before had ended, or more than once a minute: a loop does that, whose next run waits for this one."""
    runs, batches = former_runs(view), view.batches
    if not runs or not batches:
        return None
    began, rows = batches[0].started, sum(batch.rows for batch in batches)
    starts = [*(run.began for run in runs), began]
    gaps = sorted(later - earlier for earlier, later in pairwise(starts))
    period = gaps[len(gaps) // 4]  # a run that outlasts it delays the next
    if sum(abs(gap - period) <= NOISE_SHARE * period for gap in gaps) < MOSTLY * len(gaps):
        return None
    usual = median(run.seconds for run in runs)
    if OVER_RATIO * period < RESTARTED_SECONDS or usual > MOSTLY * period:
        return None
    times = max(1.0, rows / max(1.0, median(run.rows for run in runs)))
    late = LateRun(began, batches[-1].ended - began, period, times * usual)
    return late if late.seconds > max(OVER_RATIO * period, CHANGED_RATIO * late.usual) else None
