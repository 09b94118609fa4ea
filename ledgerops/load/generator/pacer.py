"""Sends a stream by its schedule, or as fast as the target takes it, and keeps the books.

Open loop: when a record is due depends on the schedule alone. A target that is full makes records late, which is
measured, and never fewer. Records are made ahead of time in the pauses, a few milliseconds of work at a time, so that
the making makes nothing late. Memory: some chunks of records, and what the target holds back.

`Pacer` never waits: the caller of `step` does (a thread on an event, locust on its hub).
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ledgerops.ledger.plan.record_stream import Rows, Stream, chunks
from ledgerops.load.generator.accounting import SentCounts
from ledgerops.load.generator.latency_samples import Sampler
from ledgerops.load.generator.records import Records, encode
from ledgerops.load.generator.target import ALL, Share, Target

TICK_SECONDS = 0.01  # seconds between two readings of the clock; the intended bound of lateness
AHEAD_SECONDS = (
    0.3  # seconds of the schedule that are made before they are due: longer than any pause of a busy machine
)
AHEAD_CHUNKS = 12  # at most: 100,000 records, some 30 MB
_IDLE_CHECK_SECONDS = 0.25  # between two checks while nothing is due
_BOOKS = 0.1  # seconds between two entries of what is due
_AT_ONCE = 2_048  # records between two checks for a stop
_SUMS = 16  # chunks that may wait to be summed up while there is more urgent work


@dataclass
class _Chunk:
    rows: Rows
    made: Records
    due: NDArray[np.float64]
    place: int = 0  # of the next record to hand over


class Pacer:
    """One sender's share of a stream on its way to a target."""

    def __init__(
        self,
        stream: Stream,
        target: Target,
        *,
        records: int | None,
        at_once: bool = False,
        share: Share = ALL,
        sampler: Sampler | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Sends of the stream's first `records` (None: until it ends) those of `share`."""
        self.sent, self.over = SentCounts(), False
        self._stream, self._target, self._clock, self._sampler = stream, target, clock, sampler
        limits = [limit for limit in (stream.total, records) if limit is not None]
        self._end: int | None = min(limits, default=None)
        self._at_once, self._share = at_once, share
        self._reached = share.number  # the first record that was not handed over
        self._ready: deque[_Chunk] = deque()
        self._handed: deque[Rows] = deque()  # waiting to be summed up
        self._pieces: Iterator[None] | None = self._make()
        self._begin: float | None = None
        self._full_since: float | None = None
        self._booked = 0.0
        self._checked_at = 0.0  # when what is due was last checked

    def prepare(self) -> None:
        """Makes the first records: what is due at once is not late for that."""
        while self._pieces and len(self._ready) < 2:
            self._piece()

    def begin(self, at: float | None = None) -> None:
        """The schedule begins now, or at an instant of the clock."""
        self._begin = self._clock() if at is None else at
        if self._sampler is not None:
            self._sampler.begin(time.time() - (self._clock() - self._begin))

    @property
    def reached(self) -> int:
        """The first record of the share that was not handed over."""
        return self._reached

    def limit(self, records: int) -> None:
        """Ends the load before this record, unless it has gone further already."""
        self._end = records if self._end is None else min(self._end, records)

    def step(self) -> float:
        """Hands over what is due, or makes a piece of what will be; returns how many seconds it may rest now."""
        if self._begin is None:
            self.begin()
        now = self._checked_at = self._elapsed()
        self._target.serve()
        if now - self._booked >= _BOOKS:
            self._book(now)
        if self._target.refused or self._hand_over(now):
            self.stop()
            return 0.0
        if self._full_since is not None:
            self._work()
            return TICK_SECONDS
        if self._work():
            return 0.0
        if not self._ready or self._at_once:
            return 0.0
        head = self._ready[0]
        return min(_IDLE_CHECK_SECONDS, max(TICK_SECONDS, float(head.due[head.place]) - self._elapsed()))

    def stop(self) -> None:
        """Ends the load here and closes the books but for what becomes of what was handed over.

        The counts are those of the last report: what has become due since then is not missing.
        """
        if self.over:
            return
        self.over = True
        self._full(False, self._elapsed())
        if self._ready and self._ready[0].place:
            head = self._ready[0]
            self._handed.append(head.rows.before(self._reached))
            self.sent.poison += head.made.poisoned(head.place)
        while self._handed:
            self._sum_up()
        self._book(self._checked_at)

    def _elapsed(self) -> float:
        return 0.0 if self._begin is None else self._clock() - self._begin

    def _hand_over(self, now: float) -> bool:
        """Hands over what is due; True when that was the last of the share."""
        while self._next():
            head = self._ready[0]
            stop = len(head.due)
            if self._end is not None:
                stop = int(np.searchsorted(head.made.numbers, self._end))
                if head.place >= stop:
                    return True
            upto = stop
            if self._at_once:
                upto = min(stop, head.place + _AT_ONCE)
            else:
                upto = min(stop, int(np.searchsorted(head.due, now, side="right")))
            upto = max(upto, head.place)
            taken = self._target.send(head.made, head.place, upto) if upto > head.place else upto
            self._taken(head, taken)
            self._full(taken < upto, now)
            if taken < upto or upto < stop or self._at_once or self._target.refused:
                return False
        return self._pieces is None

    def _next(self) -> bool:
        """Drops chunks that are done; whether there is one that is not."""
        while self._ready and self._ready[0].place >= len(self._ready[0].due):
            done = self._ready.popleft()
            self._handed.append(done.rows)
            self.sent.poison += done.made.poisoned(done.place)
        return bool(self._ready)

    def _taken(self, head: _Chunk, upto: int) -> None:
        if upto == head.place:
            return
        if not self._at_once:
            self.sent.add_lateness(self._elapsed() - head.due[head.place : upto])
        self.sent.produced += upto - head.place
        head.place = upto
        last = int(head.made.numbers[upto - 1])
        self._reached = last + self._share.count
        if upto == len(head.due):
            self._reached = max(self._reached, head.made.upto)

    def _full(self, full: bool, now: float) -> None:
        if full and self._full_since is None:
            self._full_since = now
            self.sent.backpressured += 1
        elif not full and self._full_since is not None:
            self.sent.backpressure_seconds += now - self._full_since
            self._full_since = None

    def _work(self) -> bool:
        """Some milliseconds of what can be done in advance or afterwards; False when nothing is to be done."""
        if self._handed and (len(self._handed) > _SUMS or self._enough()):
            self._sum_up()
        elif self._pieces and not self._enough():
            self._piece()
        else:
            return False
        return True

    def _enough(self) -> bool:
        """Whether there is nothing to make now."""
        if self._pieces is None or len(self._ready) >= AHEAD_CHUNKS:
            return True
        if self._at_once or not self._ready:
            return len(self._ready) > 1
        return len(self._ready) > 1 and float(self._ready[-1].due[-1]) > self._elapsed() + AHEAD_SECONDS

    def _piece(self) -> None:
        assert self._pieces is not None
        try:
            next(self._pieces)
        except StopIteration:
            self._pieces = None

    def _make(self) -> Iterator[None]:
        for upto, rows in chunks(self._stream, self._end, self._share.number, self._share.count):
            yield
            made = encode(self._stream, rows, self._target.kinds, upto)
            if len(made.numbers):
                due = np.zeros(len(made.numbers)) if self._at_once else self._stream.due_time(made.numbers)
                if self._sampler is not None:
                    self._sampler.pick(made, rows, due)
                self._ready.append(_Chunk(rows, made, due))
            yield

    def _sum_up(self) -> None:
        rows = self._handed.popleft()
        self.sent.summary.add(rows.batch, rows.first, rows.delays, rows.conflicting)

    def _book(self, now: float) -> None:
        sent, self._booked = self.sent, now
        sent.seconds, sent.records = now, self._reached
        if self._end is not None and (self._reached >= self._end or (self._pieces is None and not self._ready)):
            sent.records = self._end  # none of the share is left
        sent.acknowledged, sent.refused = self._target.acknowledged, self._target.refused
        sent.problem = self._target.problem
        sent.planned = sent.produced
        if self._at_once:
            return
        due = self._stream.due(now)
        sent.rate = (self._stream.due(now + 1.0) - due) / self._share.count
        if self._end is not None and due >= self._end:
            due, sent.rate = self._end, 0.0
        # behind by so many numbers of the stream; of those so many are sent, poison with them, as of those before
        behind = max(0, due - self._reached) / self._share.count
        share = sent.produced * self._share.count / self._reached if sent.produced else 1.0
        sent.planned += round(behind * share)


def produce(
    stream: Stream,
    target: Target,
    *,
    records: int | None,
    at_once: bool,
    wait: Callable[[float], bool],
    show: Callable[[SentCounts], None] = lambda sent: None,
    sampler: Sampler | None = None,
) -> SentCounts:
    """Sends the stream's first `records` (None: until it ends), or until `wait(seconds)` says that one shall stop.

    What became of them is in the books only after `settle`.
    """
    pacer = Pacer(stream, target, records=records, at_once=at_once, sampler=sampler)
    pacer.prepare()
    while not pacer.over:
        if wait(pacer.step()):
            pacer.stop()
        show(pacer.sent)
    return pacer.sent


def settle(sent: SentCounts, target: Target) -> None:
    """Closes the target and enters what became of the records."""
    target.close()
    sent.acknowledged, sent.refused, sent.problem = target.acknowledged, target.refused, target.problem
