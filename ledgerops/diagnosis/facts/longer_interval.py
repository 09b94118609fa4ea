"""The step that gives a query room: a longer trigger interval."""

from math import ceil

from ledgerops.metrics.first_steps import GENERAL, first_step
from ledgerops.model.finding import TRIGGER_SECONDS, Remedy, Setting
from ledgerops.signals.query_view import QueryView
from ledgerops.signals.rate_cap import ROOM_SHARE


def longer_interval(view: QueryView, batch_seconds: float, why: str = "") -> tuple[Remedy, ...]:
    """Sets the interval to whole seconds in which a batch that takes so long has room; none where it has that."""
    seconds = ceil(batch_seconds / ROOM_SHARE)
    if seconds <= view.interval:
        return ()
    step = first_step(
        "small-batch-overhead",
        GENERAL,
        why or "fewer, larger batches pay the fixed cost of a batch less often",
        settings=(Setting(TRIGGER_SECONDS, seconds),),
        seconds=f"{seconds} s",
    )
    return (step,)
