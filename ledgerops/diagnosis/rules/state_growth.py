"""State growth: the state will soon fill the available memory or disk, or has stopped shrinking.

Meaning: the state of an operator grows steadily and will soon fill the heap, the memory or the disk. Or the operator
    used to remove rows at regular intervals, and has removed none for far longer than that while its watermark does not
    advance.
Impact: garbage collection, then lost executors (HDFS-backed store), or a killed container and a full disk (RocksDB). A
    restart does not help: the state is loaded from the checkpoint.
Diagnosis: 1. `predict_linear(ledgerops_state_memory_bytes{query="QUERY"}[10m], 3600)` is the size in an hour. If it
    fits into the memory, there is time to repair the cause.
    2. `ledgerops_watermark_timestamp_seconds{query="QUERY"}` must advance. If it does not, one input stops it: see
    `watermark-stalled`.
    3. If it advances, check `rate(ledgerops_state_removed_rows_total{query="QUERY"}[10m])`. At 0, no row ever expires:
    see `unbounded-state`; above 0, more keys arrive than expire.
Mitigation: if memory runs out soon, restart with more executor memory to gain time. Then get the watermark moving, or
    bound the state. RocksDB instead of the HDFS-backed store also gains time, but the checkpoint fixes the provider, so
    this change needs a new checkpoint.
Evidence:
    ledgerops_state_rows: numRowsTotal of the operator in the newest batch
    state_bytes: what is limited, in the newest batch: memoryUsedBytes, or for the disk customMetrics.rocksdbSstFileSize
    state_bytes_growth_per_second: (bytes of the newest batch - bytes of the oldest used) / seconds between their ends,
        over the newest batches of the run (at most 200; for the disk 30), without its first 10 s. If a batch removed
        rows, only from the last such batch on; otherwise, if the state did not grow in three batches in a row
        (numRowsTotal grew by less than 0.05 numInputRows), only from the newest such batch on
    room_bytes: what is left: the heap (sum of maxMemory (memory_max_bytes) / 0.6 + 300 MiB over the active executors)
        minus memoryUsedBytes of all operators of the query, at least 0; or available memory (memory_available_bytes),
        or free disk (disk_free_bytes) of the newest record `host`
    seconds_to_limit: room_bytes / state_bytes_growth_per_second
    seconds_without_removal: end of the newest batch minus that of the last batch with numRowsRemoved > 0
    usual_seconds_without_removal: longest time between two such batches before
    earlier_state_rows_max: largest numRowsTotal of the operator up to the last batch with numRowsRemoved > 0
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from ledgerops.diagnosis import state_cost
from ledgerops.diagnosis.rule import Rule
from ledgerops.model.finding import Component, Evidence, Finding, Remedy
from ledgerops.model.records import Progress, StateOperator
from ledgerops.signals.query_view import QueryView

Reported = Sequence[tuple[Progress, StateOperator]]

MIN_BATCHES = 10
MIN_SECONDS = 20.0
MIN_GROWTH_ROWS = 1000  # by which the state must have grown
# kubernetes-mixin's KubePersistentVolumeFillingUp looks 4 days ahead from 6 hours: 16 times as far as it looks back
MAX_AHEAD_RATIO = 16.0
# growth in the later half over that in the earlier one: state that fills a bounded set of keys slows down
MIN_STEADY_RATIO = 0.8
MIN_REMOVALS = 3  # needed to know their rhythm
MIN_PAUSE_RATIO = 2.0  # over the longest pause between two removals
MIN_HEIGHT_RATIO = 1.5  # of the state rows over the most ever before
MIN_HEAP_SHARE = 0.02  # less fills nothing, even though Spark reports only a fraction of what the rows take there
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


def check(view: QueryView) -> Iterator[Finding]:
    if view.last is None or not view.last.operators:
        return
    for index in range(len(view.last.operators)):
        reports = state_cost.reports(view.baseline.steady, index)
        if (
            len(reports) < MIN_BATCHES
            or reports[-1][1].rows - min(state.rows for _, state in reports) < MIN_GROWTH_ROWS
        ):
            continue
        finding = _stopped(view, reports) or _towards(view, reports)
        if finding is not None:
            yield finding


def _stopped(view: QueryView, reports: Reported) -> Finding | None:
    """It forgot in a rhythm, and does so no longer, with a watermark that does not move."""
    removing = [place for place, (_, state) in enumerate(reports) if state.removed > 0]
    if len(removing) < MIN_REMOVALS:
        return None
    newest, operator = reports[-1]
    since = reports[removing[-1] :]
    pause = newest.ended - since[0][0].ended
    usual = max(reports[later][0].ended - reports[earlier][0].ended for earlier, later in pairwise(removing))
    before = max(state.rows for _, state in reports[: removing[-1] + 1])
    marks = {batch.watermark for batch, _ in since[len(since) // 2 :]}
    if (
        pause < max(MIN_SECONDS, MIN_PAUSE_RATIO * usual)
        or operator.rows < max(MIN_HEIGHT_RATIO * before, before + MIN_GROWTH_ROWS)
        or len(marks) > 1
    ):
        return None
    limit = _soonest(view, since)
    evidence = [
        Evidence("ledgerops_state_rows", operator.rows, "rows", f"<= {before:,}", newest.ended),
        Evidence("earlier_state_rows_max", before, "rows", "the usual", newest.ended),
        Evidence("seconds_without_removal", pause, "seconds", f"<= {usual:.0f}", newest.ended),
        Evidence("usual_seconds_without_removal", usual, "seconds", "the usual", newest.ended),
    ]
    return Finding(
        f"the state of {operator.name} grew to {operator.rows:,} rows (at most {before:,} before): none was removed "
        f"for {pause:.0f} s (at most {usual:.0f} s before), and the watermark does not advance",
        Component("operator", operator.name),
        (*evidence, *(_evidence(limit, newest.ended) if limit else ())),
        (
            Remedy(
                "find the input that stops the watermark, and get the watermark moving",
                "the operator removes a row only when the watermark has passed it",
            ),
        ),
        confidence=0.8,
        began=since[0][0].ended,
    )


def _towards(view: QueryView, reports: Reported) -> Finding | None:
    """It will be full at this rate. With a watermark the first windows may not be over yet, so nothing is said."""
    if state_cost.has_watermark(view) or state_cost.keeps_own_time(reports[-1][1]) or state_cost.forgets(view, reports):
        return None
    reports = state_cost.growing(reports)
    newest, operator = reports[-1]
    limit = _soonest(view, reports) if len(reports) >= MIN_BATCHES else None
    if (
        newest.ended - reports[0][0].ended < MIN_SECONDS
        or limit is None
        or limit.seconds > MAX_AHEAD_RATIO * _remembered(view, reports)
    ):
        return None
    return Finding(
        f"the state of {operator.name} grows by {limit.rate / 2**20:,.2f} MiB per second: {limit.what} will be full in "
        f"{limit.seconds / 60:,.0f} min",
        Component("operator", operator.name, limit.what),
        (
            Evidence("ledgerops_state_rows", operator.rows, "rows", "a plateau", newest.ended),
            *_evidence(limit, newest.ended),
        ),
        (
            Remedy(
                "bound the state with a watermark or a time to live; until then, give it more memory",
                "the state grows steadily until rows are removed from it",
                safe=False,
            ),
        ),
        confidence=0.7,
        began=reports[0][0].ended,
    )


def _remembered(view: QueryView, reports: Reported) -> float:
    """Seconds over which the run was seen growing: an hour at most."""
    began = view.history.started_at or 0.0
    oldest = next((point.at for point in view.history.trend if point.at >= began), reports[0][0].ended)
    return reports[-1][0].ended - min(oldest, reports[0][0].ended)


def _soonest(view: QueryView, reports: Reported) -> Limit | None:
    """The limit that will be met first, None when none is known or the growth slows down."""
    (first, begin), (newest, end) = reports[0], reports[-1]
    middle, middle_state = reports[len(reports) // 2]
    span = newest.ended - first.ended
    halves = (middle.ended - first.ended, newest.ended - middle.ended)
    if span <= 0 or min(halves) <= 0:
        return None
    earlier = (middle_state.rows - begin.rows) / halves[0]
    later = (end.rows - middle_state.rows) / halves[1]
    if later <= 0 or later < MIN_STEADY_RATIO * earlier:
        return None
    host = view.hosts[-1] if view.hosts else None
    limits = []
    rate = (end.memory_bytes - begin.memory_bytes) / span
    if not state_cost.off_heap(view):
        heap = state_cost.heap_bytes(view)
        if heap is not None:
            held = sum(operator.memory_bytes for operator in newest.operators)
            limits.append(Limit("the heap", end.memory_bytes, rate, max(0.0, heap - held)))
    elif host is not None:
        if host.memory_available_bytes is not None:
            limits.append(Limit("the memory", end.memory_bytes, rate, host.memory_available_bytes))
        sized = [(batch, state.custom[SST]) for batch, state in reports if SST in state.custom]
        if host.disk_free_bytes is not None and len(sized) >= MIN_BATCHES and sized[-1][0].ended > sized[0][0].ended:
            by_second = (sized[-1][1] - sized[0][1]) / (sized[-1][0].ended - sized[0][0].ended)
            limits.append(Limit("the disk", sized[-1][1], by_second, host.disk_free_bytes))
    return min((limit for limit in limits if limit.rate > 0), key=lambda limit: limit.seconds, default=None)


def _evidence(limit: Limit, at: float) -> tuple[Evidence, ...]:
    return (
        Evidence("state_bytes", limit.used, "bytes", "a plateau", at),
        Evidence("state_bytes_growth_per_second", limit.rate, "bytes/s", "~ 0", at),
        Evidence("room_bytes", limit.room, "bytes", "enough", at),
        Evidence("seconds_to_limit", limit.seconds, "seconds", "never", at),
    )


def acquit(view: QueryView) -> str | None:
    """Of what would come of it: state that is off the heap, or a small part of it, makes no collector work."""
    heap = state_cost.heap_bytes(view)
    if view.last is None or heap is None:
        return None
    if state_cost.off_heap(view):
        return "the state is kept off the heap"
    held = sum(operator.memory_bytes for operator in view.last.operators)
    return f"the state takes {held / heap:.0%} of the heap" if held < MIN_HEAP_SHARE * heap else None


RULE = Rule("state-growth", "warning", check, __doc__, ("gc-pressure",), acquit, linger=30.0, at_rest=True)
