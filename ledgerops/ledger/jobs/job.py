"""What a streaming job is: a name, the inputs it reads and a function from their rows to its output rows."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, get_args

from pyspark.sql import DataFrame

LATENESS = "1 minute"  # generated rows are late by 10 s at most
# The bank's file is in order of date but not of time: a row may stand up to 23 h 59 min behind one it should precede.
# A second day is for partitions of the replay that run ahead of others.
REPLAY_LATENESS = "2 days"

Group = Literal["sql", "windows", "joins", "udfs", "stateful", "benchmark"]
GROUPS: tuple[Group, ...] = get_args(Group)
Service = Literal["accounts", "risk"]  # something besides Spark that a job asks, by URL


@dataclass(frozen=True, kw_only=True)
class Job:
    """One streaming query. Its module, the query, the checkpoint folder and the `query` label bear the same name."""

    name: str
    group: Group
    summary: str  # one sentence, for lists of jobs
    # one DataFrame for each input, in their order; `lateness=` if the job has one, and each of `services=` by its name
    transform: Callable[..., DataFrame]
    stateful: bool  # keeps rows between batches
    inputs: tuple[str, ...] = ("transactions",)
    output_mode: str = "append"
    key: str | None = None  # the column by which rows meet in state, if there is one
    event_time: str = "event_time"
    fits_heap: bool = False  # its state, which costs less CPU there than in RocksDB
    timers: bool = False  # has timers on the clock, for which a batch runs at every trigger, input or none
    lateness: str | None = None  # default allowance of its watermark; None: the job has no watermark
    services: tuple[Service, ...] = ()
    upsert: tuple[str, ...] = ()  # columns that identify an output row: a later row with the same replaces it
    route: str | None = None  # column that names the output of a row (topic, table or folder); None: the job's own
    routes: tuple[str, ...] = ()  # its values, as far as known beforehand: outputs that a sink may have to make
    # Applied to the rows of each batch before they are written. The second argument is the watermark of the batch
    # before (seconds since the epoch): Spark drops rows that are older. None until there is one.
    on_batch: Callable[[DataFrame, float | None], DataFrame] | None = None
