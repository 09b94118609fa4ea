"""How many offsets a batch may read: by the options of the source, or by batches of one size."""

from __future__ import annotations

from ledgerops.model.delta_log import whole_number
from ledgerops.model.history import backlog
from ledgerops.signals.memo import once
from ledgerops.signals.partitions import read_by_partition
from ledgerops.signals.query_view import QueryView

CAPS = ("maxoffsetspertrigger", "maxrowspertrigger")  # counted in offsets; a cap in bytes or files is not
CAP_BATCHES = 5  # newest batches that must show it
ROOM_SHARE = 0.7  # of the time: a query that needs more for its rows has no room for a burst
MIN_ONE_SIZE_SHARE = 0.98  # smallest batch over the largest: Spark divides a cap among the partitions, and rounds
UNKNOWN_OPTION = "the limit of the source"


@once
def cap_of(view: QueryView) -> tuple[str, int] | None:
    """The option that caps the offsets of a batch, with its value; the smallest where sources differ."""
    caps = [
        (most, option)
        for option, value in view.plan.rate_limits.items()
        if option.lower() in CAPS and (most := whole_number(value))
    ]
    return (min(caps)[1], min(caps)[0]) if caps else _seen_cap(view)


def _seen_cap(view: QueryView) -> tuple[str, int] | None:
    """Five batches of one size that each leave rows behind are limited, whatever the option is called."""
    latest = view.baseline.steady[-CAP_BATCHES:]
    if len(latest) < CAP_BATCHES or not all(backlog(batch) for batch in latest):
        return None
    sizes = [sum(read_by_partition(batch).values()) for batch in latest]
    return (UNKNOWN_OPTION, max(sizes)) if 0 < min(sizes) >= MIN_ONE_SIZE_SHARE * max(sizes) else None
