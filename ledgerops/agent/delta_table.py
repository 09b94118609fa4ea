"""The history of one Delta table, followed at its `_delta_log`: one question while nothing is new, no listing.

Entries are named by their version, so the newest is found by asking for the next: one request where there is none. A
log that has grown by many versions is searched in steps that double. What was read once is kept.
"""

from collections.abc import Sequence

from ledgerops.agent.hadoop_files import FileError, HadoopFiles
from ledgerops.model.delta_log import DeltaCommit, last_checkpoint, parse_commit
from ledgerops.model.records import TablePosition, TableRead

MAX_ENTRY_BYTES = 4 * 1024 * 1024  # of an entry that are read: some 5,000 files
MAX_ENTRIES = 20  # read in one round
MAX_KEPT = 5_000  # versions after a position that are read: of a longer backlog files and bytes are not known
SURVEY_SECONDS = 60.0  # between two searches for the oldest version and the newest checkpoint


class DeltaTable:
    """The log of the table in a folder. Every method raises FileError."""

    def __init__(self, files: HadoopFiles, folder: str) -> None:
        self.head: int | None = None  # newest version
        self.checkpoint: int | None = None  # version of the newest checkpoint
        self.oldest: int | None = None  # oldest version, where older ones are gone
        self.oldest_at: float | None = None  # when it was committed
        self.entries: dict[int, DeltaCommit] = {}
        self.name = folder
        self._files, self._log = files, f"{folder.rstrip('/')}/_delta_log"
        self._surveyed = float("-inf")

    def advance(self, known: int, now: float) -> None:
        """Looks for newer versions than the head, at least `known` (-1 for none). `now` is any clock in seconds."""
        due = now - self._surveyed >= SURVEY_SECONDS
        if due:
            self._survey()
            self._surveyed = now
        newest = self._newest(max(known, -1 if self.head is None else self.head, self.checkpoint or -1))
        if due and self._exists(newest + 2) and not self._exists(newest + 1):
            raise _gone(newest + 1)
        self.head = newest

    @property
    def version(self) -> int | None:
        """The number of the newest version."""
        return self.head

    def follow(self, position: TablePosition) -> None:
        """Reads the entries from a position to the head, as far as one round does."""
        assert self.head is not None
        self.read_commits(position.version, self.head)

    def commits(self, after: int | None) -> Sequence[DeltaCommit]:
        """Those after a version, oldest first, at most MAX_ENTRIES; of a table at first sight the newest ones."""
        assert self.head is not None
        first = max(0, self.head - MAX_ENTRIES + 1) if after is None else after + 1
        first = max(first, self.oldest or 0)  # those before are deleted
        wanted = range(first, min(self.head + 1, first + MAX_ENTRIES))
        self.read_commits(wanted.start, wanted.stop - 1)
        return [self.entries[version] for version in wanted]

    def read_commits(self, first: int, last: int) -> None:
        """Reads the entries of these versions that are not known, at most MAX_ENTRIES of the first MAX_KEPT."""
        wanted = range(first, min(last + 1, first + MAX_KEPT))
        missing = [version for version in wanted if version not in self.entries]
        for version in missing[:MAX_ENTRIES]:
            self.entries[version] = self._commit(version)
        if len(self.entries) > 2 * MAX_KEPT:  # one reader needs half of it
            self.entries = {version: commit for version, commit in self.entries.items() if version >= first}

    def unread(self, position: TablePosition) -> TableRead:
        """What a reader at `position` has left, as far as the entries were read."""
        assert self.head is not None
        versions = max(0, self.head - position.version + 1)
        # the first snapshot of a table holds files of all versions before it
        countable = versions <= MAX_KEPT and not position.initial
        wanted = range(position.version, self.head + 1) if countable else range(0)
        lefts = [self.entries[version].unread(position) if version in self.entries else None for version in wanted]
        known = [left for left in lefts if left is not None]
        whole = countable and len(known) == len(lefts)
        # a reader of the change feed stays in a version that it has read
        passed = position.file >= 0 and lefts[:1] == [(0, 0)]
        versions -= passed
        first = self.entries.get(position.version + passed)
        return TableRead(
            head=self.head, versions=versions, files=sum(files for files, _ in known) if whole else None,
            bytes=sum(size for _, size in known) if whole else None,
            since=first.at if first is not None and versions and not position.initial else None, oldest=self.oldest,
            oldest_at=self.oldest_at,
        )  # fmt: skip

    def _survey(self) -> None:
        """The newest checkpoint and the oldest version, and whether the table is still the same."""
        if not self._files.exists(self._log):
            raise FileError("there is no Delta table")
        if self.head is not None and self.head >= 0 and not self._exists(self.head):  # dropped and created again
            self.head = self.oldest = self.oldest_at = None
            self.entries.clear()
        self.checkpoint = self._last_checkpoint()
        self._find_oldest()

    def _newest(self, known: int) -> int:
        """The newest version, which is `known` or later."""
        step, low = 1, known
        while self._exists(low + step):
            low, step = low + step, 2 * step
        while step > 1:
            step //= 2
            if self._exists(low + step):
                low += step
        return low

    def _find_oldest(self) -> None:
        """The oldest version from which on all are there; versions are deleted from the beginning."""
        if self.checkpoint is None or self._exists(self.oldest or 0):
            return  # nothing was deleted since: only a checkpoint allows that
        low, high = (self.oldest or 1) - 1, self.checkpoint  # `low` is gone
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if self._exists(middle) else (middle, high)
        if high != self.oldest and (found := self._files.status(self._entry(high))) is not None:
            self.oldest, self.oldest_at = high, found.modified

    def _commit(self, version: int) -> DeltaCommit:
        entry = self._entry(version)
        found = self._files.status(entry)
        if found is None:
            raise _gone(version)
        text = self._files.read(entry, MAX_ENTRY_BYTES).decode("utf-8", "replace")
        return parse_commit(version, text, found.modified, whole=found.size <= MAX_ENTRY_BYTES)

    def _last_checkpoint(self) -> int | None:
        found = self._files.find(f"{self._log}/_last_checkpoint", MAX_ENTRY_BYTES)
        return None if found is None else last_checkpoint(found.decode("utf-8", "replace"))

    def _exists(self, version: int) -> bool:
        return self._files.exists(self._entry(version))

    def _entry(self, version: int) -> str:
        return f"{self._log}/{version:020}.json"


def _gone(version: int) -> FileError:
    return FileError(f"version {version} of the table is gone")
