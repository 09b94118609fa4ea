"""How the rows of a batch are shared out to tasks."""

from collections.abc import Iterable
from typing import NamedTuple

from pyspark.sql.datasource import InputPartition

# A Python task takes some 50 ms to start and to end, in which it could make 200,000 rows: a small batch that is read by
# one task for each of five partitions costs five times as much as it must.
WORTH_A_TASK = 20_000


class Slice(NamedTuple):
    """Rows [start, end) of one partition."""

    partition: int
    start: int
    end: int


class Split(InputPartition):  # type: ignore[misc]
    """What one task reads."""

    def __init__(self, slices: tuple[Slice, ...]) -> None:
        self.slices = slices

    @property
    def rows(self) -> int:
        """Number of rows that the task reads."""
        return sum(each.end - each.start for each in self.slices)


def splits(slices: Iterable[Slice], worth: int = WORTH_A_TASK) -> list[Split]:
    """A task for each slice, but small neighbours share one, up to `worth` rows; empty slices get none."""
    made: list[Split] = []
    for each in slices:
        if each.end <= each.start:
            continue
        if made and made[-1].rows + each.end - each.start <= worth:
            made[-1] = Split((*made[-1].slices, each))
        else:
            made.append(Split((each,)))
    return made
