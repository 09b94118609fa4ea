"""How many offsets a batch may read: by the options of the source, or by batches of one size."""

from collections.abc import Sequence

from ledgerops.model.records import Progress, SourceProgress
from ledgerops.model.sources import KINDS, caps
from ledgerops.signals.memo import once
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
    """Offsets that each of the newest batches read from the source of which it read most: each has a cap of its own."""
    newest = view.baseline.steady[-CAP_BATCHES:]
    return [max((source.read for source in batch.sources), default=0) for batch in newest]


def is_full(source: SourceProgress, cap: int) -> bool:
    """Whether a batch read as much from a source as its cap allows: Spark divides it among the partitions, and rounds
    the part of each down."""
    return source.read > max(0, cap - max(1, len(source.end)))


def each_source(batches: Sequence[Progress]) -> list[tuple[SourceProgress, ...]]:
    """What these batches of a run say of each source."""
    return list(zip(*(batch.sources for batch in batches), strict=False))


def _seen_cap(view: QueryView) -> tuple[str, int] | None:
    """Five batches that read as many offsets from a source, and each leave rows in it, are limited, whatever the option
    is called."""
    latest = view.baseline.steady[-CAP_BATCHES:]
    if len(latest) < CAP_BATCHES:
        return None
    sizes = [[batch.read for batch in each] for each in each_source(latest) if all(batch.left for batch in each)]
    seen = [max(each) for each in sizes if 0 < min(each) >= MIN_ONE_SIZE_SHARE * max(each)]
    return (UNKNOWN_OPTION, min(seen)) if seen else None
