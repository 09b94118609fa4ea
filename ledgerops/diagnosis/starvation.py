"""Whether a query waits for cores that others use: a busy machine, or other queries of the application."""

from __future__ import annotations

from statistics import median

from ledgerops.diagnosis import batch_time
from ledgerops.diagnosis.cpu_contention import (
    MIN_BUSY_SHARE,
    OTHER,
    OTHERS_SHARE,
    cores_taken,
    cpu_use,
    offender,
    slots_taken,
)
from ledgerops.model.history import History
from ledgerops.signals.memo import once
from ledgerops.signals.query_view import QueryView
from ledgerops.signals.run import WINDOW_SECONDS

MAX_OTHERS_RATIO = 1.7  # a machine that is too busy slows the other phases down as much
MIN_ALONE_RATIO = 1.5  # times the rest of the batch; on a busy machine the rest grows with it
MIN_OTHERS_SECONDS = 0.1  # of the other phases; below it their ratio means nothing
BUSY_SAMPLES = 3  # at one sample every 10 s


def machine_busy(view: QueryView) -> bool:
    """Whether hardly any CPU is left for the query: stages then wait for cores, whatever the sink does.

    The machine's own figure does not tell it on a large host of which the driver may use only a part; then it shows
    in as many other queries as there are cores outlasting their interval, too.
    """
    samples = [host.cpu_busy_ratio for host in list(view.hosts)[-BUSY_SAMPLES:] if host.cpu_busy_ratio is not None]
    return (bool(samples) and median(samples) >= MIN_BUSY_SHARE) or crowded(view)


def crowded(view: QueryView) -> bool:
    """Whether as many other queries as there are cores outlast their interval and use the cores."""
    fresh = view.now - WINDOW_SECONDS
    late = [
        other
        for other in view.others
        if (other.ended is None or other.ended.at >= fresh)
        and other.idle_since is None
        and other.last is not None
        and other.last.ended >= fresh
        and other.plan is not None
        and other.plan.trigger_interval
        and other.last.duration > other.plan.trigger_interval
        and _computes(other)
    ]
    return view.cluster.cores is not None and view.cluster.cores <= len(late)


def _computes(other: History) -> bool:
    """Whether the tasks of a query's newest batch with tasks used the cores; taken for granted where none is known.

    Queries that all wait for one slow database are late together and leave the cores free.
    """
    newest = other.tasks[-1] if other.tasks else None
    return newest is None or newest.cpu_seconds >= batch_time.MAX_WAITING_CPU_SHARE * newest.run_seconds


@once
def starved(view: QueryView) -> bool:
    """Whether the query waits for the cores of a busy machine: then all that it does takes longer, not one thing.

    Where other queries hold the slots, only tasks wait and the driver does not: nothing else shows it then.
    """
    if offender(view) is not None:
        return True
    if not machine_busy(view) or keeps_itself_busy(view):
        return False
    if crowded(view):
        return True
    if not view.baseline.usual:
        return False  # a busy machine slows all parts of a batch alike, so the largest part still shows the cause
    if slots_taken(view):
        return True
    latest = [batch for batch, _ in batch_time.pairs(view)] or view.baseline.recent
    before, now = (
        median(each.duration - each.phases.get("add_batch", 0.0) for each in some)
        for some in (view.baseline.usual, latest)
    )
    return now >= MAX_OTHERS_RATIO * max(before, MIN_OTHERS_SECONDS)


def keeps_itself_busy(view: QueryView) -> bool:
    """Whether neither other processes nor other queries use much of the machine: then the query waits for none."""
    use = cpu_use(view)
    if use is None or crowded(view):
        return False
    since = use.at if view.baseline.recent_since is None else view.baseline.recent_since
    rest = sum(cores_taken(other, since, view.now) or 0.0 for other in view.others if other.ended is None)
    return use.cores_by[OTHER] + rest < OTHERS_SHARE * use.cores
