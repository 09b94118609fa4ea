"""The step that gives a query room: a longer trigger interval."""

from math import ceil

from ledgerops.diagnosis.harm import owed
from ledgerops.metrics.first_steps import GENERAL, first_step
from ledgerops.model.finding import TRIGGER_SECONDS, Remedy, Setting
from ledgerops.model.sources import caps
from ledgerops.signals.query_view import QueryView
from ledgerops.signals.rate_cap import COUNTED, ROOM_SHARE, offsets_read


def longer_interval(view: QueryView, batch_seconds: float, why: str = "") -> tuple[Remedy, ...]:
    """Sets the interval to whole seconds in which a batch that takes so long has room; none where it has that, or where
    one batch was late and no other. A limit of the source that a longer batch would reach is raised by as much, or the
    query would read fewer rows a second."""
    seconds, time = ceil(batch_seconds / ROOM_SHARE), owed(view)
    if seconds <= view.interval or (time is not None and len(time.late) == 1):
        return ()
    times = seconds / max(batch_seconds, view.interval)
    raised = _raised(view, times)
    step = first_step(
        "small-batch-overhead",
        GENERAL,
        why or "fewer, larger batches pay the fixed cost of a batch less often",
        settings=(Setting(TRIGGER_SECONDS, seconds), *(Setting(option, value) for option, value in raised)),
        seconds=f"{seconds} s",
        limits="".join(f" and {option} to {value:,}" for option, value in raised),
    )
    return (step,)


def _raised(view: QueryView, times: float) -> list[tuple[str, int]]:
    read = max(offsets_read(view), default=0)
    amounts = (cap for cap in caps(view.plan.rate_limits) if not cap.limit.unit.endswith("seconds"))
    reached = (cap for cap in amounts if cap.limit not in COUNTED or times * read > cap.value)
    return [(cap.option, ceil(times * cap.value)) for cap in reached]
