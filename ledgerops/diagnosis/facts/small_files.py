"""Whether the batches of a query write many small files to the table of its sink, by the table's own commits."""

from __future__ import annotations

from typing import NamedTuple

from ledgerops.common.format import counted, size
from ledgerops.diagnosis.limits import FAR_TIMES
from ledgerops.metrics.first_steps import first_step
from ledgerops.model.finding import Remedy
from ledgerops.signals.baseline import RECENT_BATCHES
from ledgerops.signals.memo import once
from ledgerops.signals.query_view import QueryView

MIN_FILES = 20.0  # a batch: a few small files are what little data needs
MAX_FILE_BYTES = 1e6  # below it opening a file takes longer than reading it

COMPARE = first_step(
    "slow-sink", "small files", "each task writes a file for each partition of the table for which it has rows"
)
WRITE_FEWER = Remedy(
    "repartition the rows by the columns of partitionBy before the write, or write from fewer tasks",
    "one task then writes all rows of a partition",
    safe=False,
)


class SmallFiles(NamedTuple):
    """Files of a batch and their size in bytes, on average over so many commits."""

    files: float
    bytes: float
    commits: int

    @property
    def summary(self) -> str:
        """350 files of 4.1 kB"""
        return f"{counted(round(self.files), 'file')} of {size(self.bytes)}"


@once
def small_files(view: QueryView) -> SmallFiles | None:
    """None where files are few or large, or the sink's commits are not known."""
    commits = [commit for commit in view.tables.commits if commit.files]
    if (
        len(commits) < RECENT_BATCHES
        and sum(each.files or 0 for each in commits) < FAR_TIMES * RECENT_BATCHES * MIN_FILES
    ):
        return None
    files, each = view.tables.files_per_commit, view.tables.bytes_per_file
    if files is None or each is None or files < MIN_FILES or each > MAX_FILE_BYTES:
        return None
    return SmallFiles(files, each, len(commits))
