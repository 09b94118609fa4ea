"""What a streaming job is: a name, the inputs it reads and a function from their rows to its output rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

LATENESS = "1 minute"  # generated rows are late by 10 s at most
# The bank's file is in order of date but not of time: a row may stand up to 23 h 59 min behind one it should precede.
# A second day is for partitions of the replay that run ahead of others.
REPLAY_LATENESS = "2 days"


@dataclass(frozen=True, kw_only=True)
class Job:
    """One streaming query. Its module, the query, the checkpoint folder and the `query` label bear the same name."""

    name: str
    summary: str  # one sentence, for lists of jobs
    transform: Callable[..., DataFrame]  # one DataFrame for each input, in their order; `lateness=` if the job has one
    stateful: bool  # keeps rows between batches
    inputs: tuple[str, ...] = ("transactions",)
    output_mode: str = "append"
    key: str | None = None  # the column by which rows meet in state, if there is one
    event_time: str = "event_time"
    timers: bool = False  # has timers on the clock, for which a batch runs at every trigger, input or none
    lateness: str | None = None  # default allowance of its watermark; None: the job has no watermark
