"""What an operator's growing state will fill first: the heap, the memory or the disk, and how long that takes."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from ledgerops.common.format import size
from ledgerops.diagnosis.facts import state_cost, state_trend
from ledgerops.diagnosis.facts.state_trend import MIN_STATE_BATCHES, Reports
from ledgerops.diagnosis.limits import CLEAR_TIMES, MAX_AHEAD_RATIO, VERY_LONG_SECONDS
from ledgerops.model.finding import Evidence
from ledgerops.model.records import StateOperator
from ledgerops.signals.memo import once
from ledgerops.signals.query_view import QueryView

MIN_HEAP_BYTES = 450 * 2**20  # Spark refuses to start with less
MIN_STATE_SHARE = 0.02  # less fills nothing, even though Spark reports only a fraction of what the rows take there
SST = "rocksdbSstFileSize"


class Limit(NamedTuple):
    """What would be full, and when: bytes used, bytes a second, bytes left. `lateness` is the allowed one, in seconds,
    where a watermark bounds the state, but only after that."""

    what: str
    used: float
    rate: float
    room: float
    lateness: float | None = None

    @property
    def seconds(self) -> float:
        """Seconds until it is full at this rate."""
        return self.room / self.rate

    def fills_within(self, lateness: float, reports: Reports) -> bool:
        """Whether it goes from empty to full in less event time than the allowed lateness: a watermark removes no row
        before. Old rows are read in less time than they happened in."""
        marks = [(batch.ended, batch.watermark) for batch, _ in reports if batch.watermark is not None]
        pace = max(1.0, _rate(marks)) if len(marks) > 1 else 1.0
        return pace * (self.used + self.room) / self.rate < lateness

    def evidence(self, at: float) -> tuple[Evidence, ...]:
        """These numbers, at the end of the newest batch."""
        shorter = f"< {self.seconds:.0f}"
        late = Evidence("allowed_lateness_seconds", self.lateness or 0.0, "seconds", shorter, at)
        return (
            Evidence("state_bytes", self.used, "bytes", "a plateau", at),
            Evidence("state_bytes_growth_per_second", self.rate, "bytes/s", "~ 0", at),
            Evidence("room_bytes", self.room, "bytes", "enough", at),
            Evidence("seconds_to_limit", self.seconds, "seconds", "never", at),
            *[late] * (self.lateness is not None),
        )


def in_bytes(view: QueryView, reports: Reports) -> Reports:
    """The reports with the bytes that an operator's rows take in place of their number: on the heap, or in RocksDB's
    files, whose memory is caches that fill whatever the rows."""
    if not state_cost.off_heap(view):
        return [(batch, replace(state, rows=state.memory_bytes)) for batch, state in reports]
    known = [(batch, state) for batch, state in reports if SST in state.custom]
    return [(batch, replace(state, rows=int(state.custom[SST]), memory_bytes=0)) for batch, state in known]


def counted(view: QueryView, reports: Reports) -> Reports:
    """The reports, or those in bytes where the rows are not counted (trackTotalNumberOfRows=false): updates that leave
    no row."""
    unknown = any(each.updated > each.removed for _, each in reports) and not any(each.rows for _, each in reports)
    return in_bytes(view, reports) if unknown else reports


def filling(view: QueryView, reports: Reports) -> tuple[Reports, Limit] | None:
    """Since when it grows, by rows or by bytes, and what will soon be full of it. Its `lateness` is given where it is
    full before the allowed lateness is over."""
    if len(reports) < MIN_STATE_BATCHES:
        return None
    operator = reports[-1][1]
    if state_trend.forgets(view, reports):
        return None
    own_time, bounded = state_cost.keeps_own_time(view, operator), state_cost.watermark_bounds(view, operator)
    lateness = view.plan.lateness or 0.0 if bounded and not own_time else None
    reports = state_trend.growing(reports)
    limit = soonest(view, reports) if len(reports) >= MIN_STATE_BATCHES else None
    if limit is None or reports[-1][0].ended - reports[0][0].ended < VERY_LONG_SECONDS:
        return None
    keeps = lateness is not None and limit.fills_within(lateness, reports)
    # timers, or the end of a window or of a join's range, may cut it at any time: then it is drawn no farther ahead
    # than it was seen to grow
    ahead = MAX_AHEAD_RATIO if keeps or not (own_time or bounded) else 1.0
    if limit.seconds > ahead * state_trend.remembered(view, reports):
        return None
    return reports, limit._replace(lateness=lateness if keeps else None)


class Larger(NamedTuple):
    """Rows of an operator's state that get larger: the bytes of each, when it was first seen and now."""

    operator: StateOperator
    before: float
    now: float


@once
def larger_rows(view: QueryView) -> Larger | None:
    """The rows of state that only get larger and are at least twice as large as they were, as lists that a function
    keeps: each batch reads and writes them whole, so the same input takes longer and longer. What shrinks now and then
    is not such a state: RocksDB's files do as it merges old versions of its rows."""
    for index in range(len(view.operators)):
        reports = state_cost.reports(view.baseline.steady, index)
        sizes = state_trend.growing(in_bytes(view, reports))
        if len(sizes) < MIN_STATE_BATCHES or state_trend.forgets(view, sizes):
            continue
        found = larger(reports, sizes)
        if found is not None and found.now >= CLEAR_TIMES * found.before:
            return found
    return None


def larger(reports: Reports, sizes: Reports) -> Larger | None:
    """Rows of an operator because of which its bytes grow, and not because they get more; `sizes` are the newest of its
    reports `in_bytes`."""
    early, newest = reports[-len(sizes)][1], reports[-1][1]
    before, now = sizes[0][1].rows, sizes[-1][1].rows
    more_rows = CLEAR_TIMES * (newest.rows - early.rows) * before
    if not early.rows or not newest.rows or (now - before) * early.rows < more_rows:
        return None
    return Larger(newest, before / early.rows, now / newest.rows)


def soonest(view: QueryView, reports: Reports) -> Limit | None:
    """The limit that will be met first, None when none is known, the state fills little, or the growth slows down."""
    if not state_trend.sustained(reports):
        return None
    grows = (limit for limit in _limits(view, reports) if limit.rate > 0)
    limits = [each for each in grows if each.used >= MIN_STATE_SHARE * (each.used + each.room)]
    return min(limits, key=lambda limit: limit.seconds, default=None)


def _limits(view: QueryView, reports: Reports) -> Iterator[Limit]:
    off_heap, room = state_cost.off_heap(view), room_bytes(view)
    if room is not None:
        held = [(batch.ended, float(state.memory_bytes)) for batch, state in reports]
        yield Limit("the memory" if off_heap else "the heap", held[-1][1], _rate(held), room)
    disk = view.hosts[-1].disk_free_bytes if view.hosts else None
    sized = [(batch.ended, state.custom[SST]) for batch, state in reports if SST in state.custom]
    if off_heap and disk is not None and len(sized) >= MIN_STATE_BATCHES:
        yield Limit("the disk", sized[-1][1], _rate(sized), disk)


def _rate(sizes: Sequence[tuple[float, float]]) -> float:
    """Bytes that are added each second, by the first and the newest of sizes with their instants."""
    (began, first), (ended, newest) = sizes[0], sizes[-1]
    return (newest - first) / (ended - began)


def room_bytes(view: QueryView) -> float | None:
    """Bytes that state may still grow by: what all operators leave of the heap, or the machine's available memory."""
    if state_cost.off_heap(view):
        return view.hosts[-1].memory_available_bytes if view.hosts else None
    heap = state_cost.heap_bytes(view)
    return None if heap is None else max(0.0, heap - _held(view))


def _held(view: QueryView) -> int:
    """Bytes that all operators hold."""
    return sum(operator.memory_bytes for operator in view.operators)


def fills_little(view: QueryView) -> str | None:
    """Why state makes the collector no work: it is off the heap, or a small part of it. None where it may."""
    if not view.operators:
        return None
    if state_cost.off_heap(view):
        return "the state is kept off the heap"
    heap, held = state_cost.heap_bytes(view), _held(view)
    if held >= MIN_STATE_SHARE * (heap or MIN_HEAP_BYTES):
        return None
    return f"the state takes {held / heap:.0%} of the heap" if heap else f"the state takes {size(held)}"
