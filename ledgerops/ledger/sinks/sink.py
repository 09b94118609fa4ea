"""What a sink is: how a query writes, and whether a checkpoint and what is written belong together."""

from pathlib import Path
from typing import ClassVar, Protocol

from pyspark.sql import DataFrame
from pyspark.sql.streaming import DataStreamWriter

from ledgerops.ledger.jobs.job import Job


class Sink(Protocol):
    """One kind of destination, for any job. Its `str` names the destination in messages, without secrets."""

    remembers: ClassVar[bool]  # whether it knows which batches it has; one that cannot writes repeated ones again

    def last_batch(self, job: Job, checkpoint: Path) -> int | None:
        """The newest batch of `job` that was written from `checkpoint`; None before the first.

        Raises UserError when the destination cannot be asked.
        """
        ...

    def write(self, job: Job, rows: DataFrame, checkpoint: Path) -> DataStreamWriter:
        """The writer of the stream `rows`, with format, options or function set. Raises UserError."""
        ...
