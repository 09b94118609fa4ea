"""How many offsets a batch may read: by the options of the source, or by batches of one size."""

from ledgerops.model.history import backlog
from ledgerops.model.sources import KINDS, caps
from ledgerops.signals.memo import once
from ledgerops.signals.partitions import read_by_partition
from ledgerops.signals.query_view import QueryView

# of sources that tell what is left in offsets; a cap in bytes or files, or on rows of a table, is none
COUNTED = [limit for kind in KINDS if "offsets" in kind.units for limit in kind.limits if limit.unit == "rows"]
CAP_BATCHES = 5  # newest batches that must show it
ROOM_SHARE = 0.7  # of the time: a query that needs more for its rows has no room for a burst
MIN_ONE_SIZE_SHARE = 0.98  # smallest batch over the largest: Spark divides a cap among the partitions, and rounds
UNKNOWN_OPTION = "the limit of the source"


@once
def cap_of(view: QueryView) -> tuple[str, int] | None:
    """The option that caps the offsets of a batch, with its value; the smallest where sources differ."""
    known = [cap for cap in caps(view.plan.rate_limits) if cap.limit in COUNTED]
    return (known[0].option, known[0].value) if known else _seen_cap(view)


def offsets_read(view: QueryView) -> list[int]:
    """Offsets that each of the newest batches read."""
    return [sum(read_by_partition(batch).values()) for batch in view.baseline.steady[-CAP_BATCHES:]]


def _seen_cap(view: QueryView) -> tuple[str, int] | None:
    """Five batches of one size that each leave rows behind are limited, whatever the option is called."""
    latest = view.baseline.steady[-CAP_BATCHES:]
    if len(latest) < CAP_BATCHES or not all(backlog(batch) for batch in latest):
        return None
    sizes = offsets_read(view)
    return (UNKNOWN_OPTION, max(sizes)) if 0 < min(sizes) >= MIN_ONE_SIZE_SHARE * max(sizes) else None
