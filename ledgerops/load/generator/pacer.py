"""Sends a stream by its schedule, or as fast as the target takes it, and counts what it sends.

Open loop: when a record is due depends on the schedule alone. A target that is full makes records late, which is
measured, and never fewer. Records are made ahead of time in the pauses, a few milliseconds of work at a time, so that
the making makes nothing late. Memory: some chunks of records, and what the target holds back.

`Pacer` never waits: the caller of `step` does (a thread on an event, locust on its hub).
"""

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

TICK_SECONDS = 0.01  # between two readings of the clock; the intended bound of lateness
#: Records are made so long before they are due: longer than any pause of a busy machine.
AHEAD_SECONDS = 0.3
AHEAD_CHUNKS = 12  # at most: 100,000 records, some 30 MB
_IDLE_CHECK_SECONDS = 0.25  # between two checks while nothing is due
_COUNT_SECONDS = 0.1  # between two counts of what is due
_AT_ONCE_RECORDS = 2_048  # between two checks for a stop
_MAX_UNSUMMED_CHUNKS = 16  # that may wait to be summed up while there is more urgent work


@dataclass
class _Chunk:
    """Some records that are made, with the instants at which they are due."""

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
        self.reached = share.number  # the first record of the share that was not handed over
        self._ready: deque[_Chunk] = deque()
        self._unsummed: deque[Rows] = deque()  # waiting to be summed up
        self._making: Iterator[None] | None = self._make()
        self._begun_at: float | None = None
        self._full_at: float | None = None  # when the target was last seen full; None: it is not
        self._counted_at = 0.0
        self._checked_at = 0.0  # when what is due was last checked

    def prepare(self) -> None:
        """Makes the first records: what is due at once is not late for that."""
        while self._making and len(self._ready) < 2:
            self._make_more()

    def begin(self, at: float | None = None) -> None:
        """Begins the schedule now, or at an instant of the clock."""
        self._begun_at = self._clock() if at is None else at
        if self._sampler is not None:
            self._sampler.begin(time.time() - (self._clock() - self._begun_at))

    def limit(self, records: int) -> None:
        """Ends the load before this record, unless it has gone further already."""
        self._end = records if self._end is None else min(self._end, records)

    def step(self) -> float:
        """Hands over what is due, or prepares what will be; returns the seconds until the next step."""
        if self._begun_at is None:
            self.begin()
        now = self._checked_at = self._elapsed()
        self._target.serve()
        if now - self._counted_at >= _COUNT_SECONDS:
            self._update_counts(now)
        if self._target.refused or self._hand_over(now):
            self.stop()
            return 0.0
        if self._full_at is not None:
            self._work()
            return TICK_SECONDS
        if self._work():
            return 0.0
        if not self._ready or self._at_once:
            return 0.0
        head = self._ready[0]
        return min(_IDLE_CHECK_SECONDS, max(TICK_SECONDS, float(head.due[head.place]) - self._elapsed()))

    def stop(self) -> None:
        """Ends the load here. What becomes of the records that were handed over is counted later, by `settle`.

        The counts are those of the last report: what has become due since then is not missing.
        """
        if self.over:
            return
        self.over = True
        self._note_backpressure(False, self._elapsed())
        if self._ready and self._ready[0].place:
            head = self._ready[0]
            self._unsummed.append(head.rows.where(head.rows.numbers < self.reached))
            self.sent.poison += head.made.poisoned(head.place)
        while self._unsummed:
            self._sum_up()
        self._update_counts(self._checked_at)

    def _elapsed(self) -> float:
        return 0.0 if self._begun_at is None else self._clock() - self._begun_at

    def _hand_over(self, now: float) -> bool:
        """Hands over what is due; True when that was the last of the share."""
        while self._drop_sent_chunks():
            head = self._ready[0]
            stop = len(head.due)
            if self._end is not None:
                stop = int(np.searchsorted(head.made.numbers, self._end))
                if head.place >= stop:
                    self.reached = max(self.reached, self._end)  # what follows the last of the share is of others
                    return True
            due = head.place + _AT_ONCE_RECORDS if self._at_once else int(np.searchsorted(head.due, now, side="right"))
            upto = max(head.place, min(stop, due))
            taken = self._target.send(head.made, head.place, upto) if upto > head.place else upto
            self._count_sent(head, taken)
            self._note_backpressure(taken < upto, now)
            if taken < upto or upto < stop or self._at_once or self._target.refused:
                return False
        return self._making is None

    def _drop_sent_chunks(self) -> bool:
        """Drops chunks that are done; whether there is one that is not."""
        while self._ready and self._ready[0].place >= len(self._ready[0].due):
            done = self._ready.popleft()
            self._unsummed.append(done.rows)
            self.sent.poison += done.made.poisoned(done.place)
        return bool(self._ready)

    def _count_sent(self, head: _Chunk, upto: int) -> None:
        if upto == head.place:
            return
        if not self._at_once:
            self.sent.add_lateness(self._elapsed() - head.due[head.place : upto])
        self.sent.produced += upto - head.place
        head.place = upto
        last = int(head.made.numbers[upto - 1])
        self.reached = last + self._share.count
        if upto == len(head.due):
            self.reached = max(self.reached, head.made.upto)

    def _note_backpressure(self, full: bool, now: float) -> None:
        if self._full_at is not None:
            self.sent.backpressure_seconds += now - self._full_at
        elif full:
            self.sent.backpressured += 1
        self._full_at = now if full else None

    def _work(self) -> bool:
        """Some milliseconds of what can be done in advance or afterwards; False when nothing is to be done."""
        if self._unsummed and (len(self._unsummed) > _MAX_UNSUMMED_CHUNKS or self._made_enough()):
            self._sum_up()
        elif self._making and not self._made_enough():
            self._make_more()
        else:
            return False
        return True

    def _made_enough(self) -> bool:
        """Whether there is nothing to make now."""
        if self._making is None or len(self._ready) >= AHEAD_CHUNKS:
            return True
        if len(self._ready) < 2:
            return False
        return self._at_once or float(self._ready[-1].due[-1]) > self._elapsed() + AHEAD_SECONDS

    def _make_more(self) -> None:
        assert self._making is not None
        try:
            next(self._making)
        except StopIteration:
            self._making = None

    def _make(self) -> Iterator[None]:
        """Makes the chunks one after the other, each in two steps of some milliseconds."""
        for upto, rows in chunks(self._stream, self._end, self._share.number, self._share.count):
            yield
            made = encode(self._stream, rows, self._target.kinds, upto)
            if len(made.numbers):
                due = np.zeros(len(made.numbers)) if self._at_once else self._stream.due_time(made.numbers)
                if self._sampler is not None:
                    made.samples.extend(self._sampler.pick(made.numbers, rows, due))
                self._ready.append(_Chunk(rows, made, due))
            yield

    def _sum_up(self) -> None:
        rows = self._unsummed.popleft()
        self.sent.summary.add(rows)

    def _update_counts(self, now: float) -> None:
        sent, self._counted_at = self.sent, now
        sent.seconds, sent.records = now, self.reached
        if self._end is not None and (self.reached >= self._end or (self._making is None and not self._ready)):
            sent.records = self._end  # none of the share is left
        sent.acknowledged, sent.refused = self._target.acknowledged, self._target.refused
        sent.problem = self._target.problem
        sent.planned = sent.produced
        if self._at_once:
            return
        due = self._stream.due(now)
        # of the stream's records, those of the table, with as much poison as those so far had
        share = sent.produced * self._share.count / self.reached if sent.produced else 1.0
        sent.rate = (self._stream.due(now + 1.0) - due) / self._share.count * share
        if self._end is not None and due >= self._end:
            due, sent.rate = self._end, 0.0
        behind = max(0, due - self.reached) / self._share.count
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
    """Sends the stream's first `records` (None: until it ends), or until `wait(seconds)` returns true.

    What became of them is in the counts only after `settle`.
    """
    pacer = Pacer(stream, target, records=records, at_once=at_once, sampler=sampler)
    pacer.prepare()
    while not pacer.over:
        if wait(pacer.step()):
            pacer.stop()
        show(pacer.sent)
    return pacer.sent


def settle(sent: SentCounts, target: Target) -> None:
    """Closes the target and counts what became of the records."""
    target.close()
    sent.acknowledged, sent.refused, sent.problem = target.acknowledged, target.refused, target.problem
