"""Sends a stream by its schedule, or as fast as the target takes it, and keeps the books.

Open loop: when a record is due depends on the schedule alone. A target that blocks makes records late, which is
measured, and never fewer. Memory: one chunk of records, and what the target holds back.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from ledgerops.ledger.layout import Ints
from ledgerops.ledger.stream import Stream, chunks
from ledgerops.ledger.summary import Summary
from ledgerops.producing.records import Records, encode

TICK = 0.01  # seconds between two looks at the clock; the bound of lateness on purpose
_MOST_LATE = 60_000  # ms; what is later counts as this
_LOOK = 0.25  # seconds between two looks while nothing is due
_AT_ONCE = 2_048  # records between two looks at the stop


class Target(Protocol):
    """Where records go. `send` may block; `close` returns when it is known what became of each."""

    kinds: Sequence[str]  # of poison that it can hold

    def send(self, records: Records, start: int, end: int) -> None:
        """Takes the records at places [start, end), and hears what became of earlier ones; there may be none."""
        ...

    def close(self) -> None: ...
    @property
    def acknowledged(self) -> int: ...
    @property
    def refused(self) -> int: ...
    @property
    def problem(self) -> str | None:
        """Why the first record was refused."""
        ...


@dataclass
class Sent:
    """What was handed to the target: all of the records numbered below `records`, and no other."""

    records: int = 0
    planned: int = 0  # with poison
    seconds: float = 0.0
    summary: Summary = field(default_factory=Summary)
    poison: Counter[str] = field(default_factory=Counter)
    lateness: Ints = field(default_factory=lambda: np.zeros(_MOST_LATE + 1, np.int64))  # records by ms after due

    def late(self, share: float) -> float:
        """Seconds behind the schedule that so large a share of the records did not exceed."""
        upto = np.cumsum(self.lateness)
        return float(np.searchsorted(upto, share * upto[-1])) / 1000 if upto[-1] else 0.0


def produce(
    stream: Stream,
    target: Target,
    *,
    records: int | None,
    at_once: bool,
    wait: Callable[[float], bool],
    show: Callable[[Sent], None] = lambda sent: None,
) -> Sent:
    """Sends the stream's first `records` (None: until it ends), or until `wait(seconds)` says that one shall stop."""
    sent, began = Sent(), time.monotonic()
    for upto, rows in chunks(stream, records):
        made = encode(stream, rows, target.kinds)
        until = _send(stream, made, target, sent, None if at_once else began, wait, show)
        sent.records = upto if until is None else until
        rows = rows if until is None else rows.before(until)
        sent.summary.add(rows.batch, rows.first, rows.delays, rows.conflicting)
        sent.poison += made.poisoned(sent.records)
        if until is not None or wait(0.0) or target.refused:
            break
    sent.seconds = time.monotonic() - began
    return sent


def _send(
    stream: Stream,
    made: Records,
    target: Target,
    sent: Sent,
    began: float | None,
    wait: Callable[[float], bool],
    show: Callable[[Sent], None],
) -> int | None:
    """Sends one chunk; returns the number of the first record that was not sent when it was stopped."""
    due = stream.due_time(made.numbers) if began is not None and len(made.numbers) else np.zeros(len(made.numbers))
    place, count = 0, len(made.numbers)
    while place < count:
        if began is None:
            upto = min(count, place + _AT_ONCE)
        else:
            now = time.monotonic() - began
            upto = int(np.searchsorted(due, now, side="right"))
        # poison goes with the record that it follows
        while 0 < upto < count and made.numbers[upto] == made.numbers[upto - 1]:
            upto += 1
        upto = max(upto, place)
        target.send(made, place, upto)
        if upto > place:
            sent.planned += upto - place
            if began is not None:
                behind = (time.monotonic() - began - due[place:upto]) * 1000
                np.add.at(sent.lateness, np.clip(behind, 0, _MOST_LATE).astype(np.int64), 1)
            place = upto
            show(sent)
        pause = 0.0
        if began is not None and place < count:
            pause = min(_LOOK, max(TICK, float(due[place]) - (time.monotonic() - began)))
        if (wait(pause) or target.refused) and place < count:
            return int(made.numbers[place])
    return None
