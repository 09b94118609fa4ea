"""Rows a second: what arrives at a query's sources, what it reads, and what it processes while it is busy."""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence

from ledgerops.model import head_table
from ledgerops.model.records import Offsets, Progress
from ledgerops.signals.memo import kept
from ledgerops.signals.run import Run

FACTOR_BATCHES = 60  # newest batches that rows per offset are taken over


def growth(earlier: Offsets, later: Offsets) -> int:
    """How many offsets the heads moved between two readings, over the partitions in both."""
    return sum([moved for each, head in later.items() if (moved := head - earlier.get(each, head)) > 0])


def rows_per_offset(batches: Sequence[Progress]) -> dict[str, float]:
    """Rows per offset of each source: 1 for most topics, less with compaction or transactions, many for files."""
    rows, offsets = defaultdict[str, int](int), defaultdict[str, int](int)
    for batch in batches:
        for source in batch.sources:
            if source.read > 0 and source.rows > 0:
                rows[source.name] += source.rows
                offsets[source.name] += source.read
    return {name: rows[name] / offsets[name] for name in rows}


def arrival_between(earlier: Progress, later: Progress, factors: Mapping[str, float]) -> dict[str, float]:
    """Rows a second that arrived at each source between two batches, by the growth of its heads.

    The time is that between the two readings of the heads. `factors` are the rows per offset, 1 where absent. Empty
    when the readings are not in order; a source whose heads are unknown is absent. Every rate of arrival is taken here.
    """
    span = head_table.offsets_read_at(later) - head_table.offsets_read_at(earlier)
    if span <= 0:
        return {}
    heads = {source.name: source.latest for source in earlier.sources}
    return {
        source.name: growth(heads[source.name], source.latest) * factors.get(source.name, 1.0) / span
        for source in later.sources
        if source.latest and heads.get(source.name)
    }


def rows_of(batch: Progress, sources: Collection[str]) -> int:
    """The rows that a batch read from some sources, by their names."""
    return sum([each.rows for each in batch.sources if each.name in sources])


def read_over(batches: Sequence[Progress], sources: Collection[str] | None = None) -> float | None:
    """Rows a second that some batches of a query read, of some sources by their names or of all, over the time in which
    these rows came where each reads all there is: since the first of them asked its sources until the last did. None
    for fewer than two."""
    if len(batches) < 2:
        return None
    span = head_table.offsets_read_at(batches[-1]) - head_table.offsets_read_at(batches[0])
    rows = [batch.rows if sources is None else rows_of(batch, sources) for batch in batches[1:]]
    return sum(rows) / span if span > 0 else None


class Rates:
    """The rates of one run, over its batches of the last minute."""

    def __init__(self, run: Run) -> None:
        self._run = run

    @kept
    def rows_per_offset(self) -> Mapping[str, float]:
        """Rows per offset by source, over the last FACTOR_BATCHES batches; a source that read nothing is absent."""
        return rows_per_offset(self._run.batches[-FACTOR_BATCHES:])

    @kept
    def arrival_by_source(self) -> Mapping[str, float]:
        """Rows a second that arrive at each source, by the growth of its heads: consumption cannot hide it."""
        last, recent = self._run.last, self._run.recent
        if last is not None and self._run.is_idle:
            return {source.name: 0.0 for source in last.sources if source.latest}
        return arrival_between(recent[0], recent[-1], self.rows_per_offset) if len(recent) > 1 else {}

    @kept
    def arrival(self) -> float | None:
        """Rows a second that arrive, over all sources that report their heads."""
        return sum(self.arrival_by_source.values()) if self.arrival_by_source else None

    @kept
    def read_by_source(self) -> Mapping[str, float]:
        """Rows a second of wall time read from each source over the last minute; 0 when idle."""
        last, recent = self._run.last, self._run.recent
        if last is None:
            return {}
        if self._run.is_idle:
            return {source.name: 0.0 for source in last.sources}
        if len(recent) < 2:
            return {}
        span = recent[-1].started - recent[0].started
        rows = defaultdict[str, int](int)
        for batch in recent[1:]:  # a batch reads what came since the one before it began
            for source in batch.sources:
                rows[source.name] += source.rows
        return {name: count / span for name, count in rows.items()} if span > 0 else {}

    @kept
    def processed(self) -> float | None:
        """Rows a second of batch time over the last minute: what the query processes while it is busy."""
        seconds = sum(batch.duration for batch in self._run.recent)
        return sum(batch.rows for batch in self._run.recent) / seconds if seconds > 0 else None
