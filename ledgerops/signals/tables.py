"""The tables that a query reads and writes: what is unread, how old it is, and what the commits of the sink look like.

Known from the tables' own histories, which a collector reads, or from what a source reports of itself.
"""

from collections.abc import Mapping, Sequence

from ledgerops.model.records import NOTHING_REPORTED, Left, Partition, TableRead
from ledgerops.model.records import Tables as TableSample
from ledgerops.signals.memo import kept
from ledgerops.signals.run import Run


class Tables:
    """The tables of one run at its `now`."""

    def __init__(self, run: Run) -> None:
        self._run = run

    @kept
    def read(self) -> Mapping[str, TableRead]:
        """By source, what the table's own history says of its reader; empty without a collector."""
        return self.samples[-1].sources if self.samples else {}

    @kept
    def samples(self) -> Sequence[TableSample]:
        """All that is still known of them, oldest first."""
        return [each for each in self._run.history.table_samples if each.run_id == self._run.history.run_id]

    @kept
    def reported(self) -> Mapping[str, Left]:
        """What the sources themselves report as unread, by source; one that reports nothing is absent."""
        return {source.name: source.reported for source in self._run.sources if source.reported != NOTHING_REPORTED}

    @kept
    def versions(self) -> Mapping[str, int]:
        """Versions of each table that were not read."""
        return {name: table.versions for name, table in self.read.items()}

    @kept
    def rows(self) -> Mapping[str, int]:
        """Rows that were not read: by the history of the table, else as the source reports it."""
        return self._unread("rows")

    @kept
    def files(self) -> Mapping[str, int]:
        """Files that were not read, likewise."""
        return self._unread("files")

    @kept
    def bytes(self) -> Mapping[str, int]:
        """Bytes that were not read, likewise."""
        return self._unread("bytes")

    def _unread(self, unit: str) -> Mapping[str, int]:
        told = [(name, getattr(each, unit)) for each_by in (self.reported, self.read) for name, each in each_by.items()]
        return {name: count for name, count in told if count is not None}

    @kept
    def unread_since(self) -> Mapping[Partition, float]:
        """By (source, "0"): when the oldest unread row came, in epoch seconds; infinity where nothing is left."""
        ended = self._run.last.ended if self._run.last is not None else 0.0
        found = {
            (name, "0"): ended - left.seconds if left.seconds else float("inf")
            for name, left in self.reported.items()
            if left.seconds is not None
        }
        for name, table in self.read.items():
            if table.versions == 0:
                found[name, "0"] = float("inf")
            elif table.since is not None:
                found[name, "0"] = table.since
        return found

    @kept
    def headroom(self) -> Mapping[Partition, float]:
        """By (source, "0"): seconds by which the oldest unread version is younger than the oldest that still exists.
        Only of tables from which versions have been deleted: a younger table keeps all of them."""
        return {
            (name, "0"): max(0.0, table.since - table.oldest_at)
            for name, table in self.read.items()
            if table.versions and table.since is not None and table.oldest_at is not None
        }

    @kept
    def versions_since_checkpoint(self) -> int | None:
        """Versions of the sink's table since the newest checkpoint of its log, all of them where it has none."""
        known = self._run.history.tables
        if known is None or known.head is None:
            return None
        return known.head - known.checkpoint if known.checkpoint is not None else known.head + 1
