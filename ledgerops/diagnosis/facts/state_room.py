"""What an operator's growing state will fill first: the heap, the memory or the disk, and how long that takes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from ledgerops.common.format import size
from ledgerops.diagnosis.facts import state_cost
from ledgerops.diagnosis.facts.state_trend import MIN_STATE_BATCHES, Reports, sustained
from ledgerops.model.finding import Evidence
from ledgerops.signals.query_view import QueryView

MIN_HEAP_BYTES = 450 * 2**20  # Spark refuses to start with less
MIN_STATE_SHARE = 0.02  # less fills nothing, even though Spark reports only a fraction of what the rows take there
SST = "rocksdbSstFileSize"


class Limit(NamedTuple):
    """What would be full, and when: bytes used, bytes a second, bytes left."""

    what: str
    used: float
    rate: float
    room: float

    @property
    def seconds(self) -> float:
        """Seconds until it is full at this rate."""
        return self.room / self.rate

    def evidence(self, at: float) -> tuple[Evidence, ...]:
        """These numbers, at the end of the newest batch."""
        return (
            Evidence("state_bytes", self.used, "bytes", "a plateau", at),
            Evidence("state_bytes_growth_per_second", self.rate, "bytes/s", "~ 0", at),
            Evidence("room_bytes", self.room, "bytes", "enough", at),
            Evidence("seconds_to_limit", self.seconds, "seconds", "never", at),
        )


def soonest(view: QueryView, reports: Reports) -> Limit | None:
    """The limit that will be met first, None when none is known or the growth slows down."""
    if not sustained(reports):
        return None
    limits = _off_heap(view, reports) if state_cost.off_heap(view) else _on_heap(view, reports)
    return min((limit for limit in limits if limit.rate > 0), key=lambda limit: limit.seconds, default=None)


def _on_heap(view: QueryView, reports: Reports) -> Iterator[Limit]:
    room = room_bytes(view)
    if room is not None:
        yield Limit("the heap", reports[-1][1].memory_bytes, _rate(reports), room)


def _off_heap(view: QueryView, reports: Reports) -> Iterator[Limit]:
    room = room_bytes(view)
    if room is not None:
        yield Limit("the memory", reports[-1][1].memory_bytes, _rate(reports), room)
    disk = view.hosts[-1].disk_free_bytes if view.hosts else None
    sized = [(batch, state.custom[SST]) for batch, state in reports if SST in state.custom]
    if disk is not None and len(sized) >= MIN_STATE_BATCHES and sized[-1][0].ended > sized[0][0].ended:
        by_second = (sized[-1][1] - sized[0][1]) / (sized[-1][0].ended - sized[0][0].ended)
        yield Limit("the disk", sized[-1][1], by_second, disk)


def _rate(reports: Reports) -> float:
    """Bytes by which the operator's state grew each second."""
    (first, begin), (newest, end) = reports[0], reports[-1]
    return (end.memory_bytes - begin.memory_bytes) / (newest.ended - first.ended)


def room_bytes(view: QueryView) -> float | None:
    """Bytes that state may still grow by: what all operators leave of the heap, or the machine's available memory."""
    if state_cost.off_heap(view):
        return view.hosts[-1].memory_available_bytes if view.hosts else None
    heap = state_cost.heap_bytes(view)
    if heap is None or view.last is None:
        return None
    return max(0.0, heap - sum(operator.memory_bytes for operator in view.last.operators))


def fills_little(view: QueryView) -> str | None:
    """Why state makes the collector no work: it is off the heap, or a small part of it. None where it may."""
    if view.last is None or not view.last.operators:
        return None
    if state_cost.off_heap(view):
        return "the state is kept off the heap"
    heap = state_cost.heap_bytes(view)
    held = sum(operator.memory_bytes for operator in view.last.operators)
    if held >= MIN_STATE_SHARE * (heap or MIN_HEAP_BYTES):
        return None
    return f"the state takes {held / heap:.0%} of the heap" if heap else f"the state takes {size(held)}"
