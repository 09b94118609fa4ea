"""What each batch adds to the folder of a file sink (Parquet, JSON, CSV ...), from the log that the sink keeps there.

The log has an entry for each batch, with a line for each file. Every tenth entry repeats all before it and grows with
the table (`spark.sql.streaming.fileSink.log.compactInterval`): such a batch is passed over. Spark deletes old entries,
and skips a batch whose number is not above the newest: so that one is told, too, where it is older than the run.
"""

import re
from collections.abc import Sequence

import orjson

from ledgerops.agent.hadoop_files import HadoopFiles
from ledgerops.model.records import LoggedCommit

MAX_ENTRY_BYTES = 4 * 1024 * 1024  # of an entry that are read: some 15,000 files; more are not counted
ENTRY = re.compile(r"/(\d+)[,}]")  # in a listing
MAX_EMPTY_ENTRIES = 5  # read of another run, to find one with files
MAX_ENTRIES = 50  # read in one round, the newest: every entry of a query with five batches a second


class FileSinkLog:
    """The log in the folder `name`, of the one query that may write there, from its batch `first` on; the run began at
    `begun`, None where that is not known. Every method raises FileError."""

    version: None = None  # readers need no checkpoint
    checkpoint: None = None

    def __init__(self, files: HadoopFiles, name: str, query_id: str, first: int, begun: float | None) -> None:
        self.name = name
        self._files, self._query_id = files, query_id
        self._newest = self._looked = first - 1
        self._begun = begun  # None once the folder was listed
        self._ahead: LoggedCommit | None = None  # what another run wrote before, with a number that is yet to come

    def advance(self, known: int, now: float) -> None:
        """`known` is the newest batch that has ended. Nothing is asked."""
        self._newest = known

    def commits(self, after: int | None) -> Sequence[LoggedCommit]:
        """What the batches since the last call added, oldest first, at most the newest MAX_ENTRIES. Each is looked for
        once: one that is passed over has no commit. The last of the first call may be what another run wrote."""
        batches = range(max(self._looked + 1, self._newest - MAX_ENTRIES + 1), self._newest + 1)
        found = [commit for batch in batches if (commit := self._read(batch)) and commit != self._ahead]
        if batches and self._begun is not None:
            self._ahead = self._find_ahead(self._begun)
            found += [self._ahead] if self._ahead is not None else []
            self._begun = None
        self._looked = self._newest
        return found

    def _find_ahead(self, begun: float) -> LoggedCommit | None:
        """The newest entry with files, where it has a number that is yet to come and is older than the run: a batch
        without rows may have left one without any."""
        listed = sorted({int(number) for number in ENTRY.findall(self._files.listing(self.name))})
        entries = (self._read(number) for number in reversed(listed[-MAX_EMPTY_ENTRIES:]) if number > self._newest)
        newest = next((entry for entry in entries if entry is not None and entry.files), None)
        return newest if newest is not None and newest.at < begun else None

    def _read(self, batch: int) -> LoggedCommit | None:
        entry = self._files.find(f"{self.name}/{batch}", MAX_ENTRY_BYTES)
        return None if entry is None else _parse(batch, self._query_id, entry)


def _parse(batch: int, query_id: str, entry: bytes) -> LoggedCommit:
    """Entries are numbered by the batch; the newest file was written last."""
    files, size, at = 0, 0, 0.0
    for line in entry.splitlines()[1:]:  # the first one is the version of the format
        try:
            added = orjson.loads(line)
            if added["action"] == "add":
                files, size, at = files + 1, size + added["size"], max(at, added["modificationTime"] / 1000)
        except (ValueError, KeyError, TypeError):  # the last one may be cut
            continue
    return LoggedCommit(batch, at, batch, rows=None, files=files, bytes=size, query_id=query_id)
