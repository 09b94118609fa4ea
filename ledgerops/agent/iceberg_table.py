"""The history of one Iceberg table, followed through the table object that the query's own plan holds.

The source itself asks for the newest metadata in each trigger, and the sink with each commit, whichever catalog has
them. Here they are only read in the driver's memory: to refresh an object that the query is using could give it older
metadata than it has just planned with. Snapshots are counted along their ancestry.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, TypeVar

from ledgerops.agent.hadoop_files import FileError, reason_of
from ledgerops.agent.plan import execution_of
from ledgerops.model.iceberg_snapshot import IcebergSnapshot, parse_snapshot
from ledgerops.model.records import TablePosition, TableRead
from ledgerops.runtime.runs import Run

MAX_SNAPSHOTS = 500  # read in one round: each is a call into the JVM
MAX_ANCESTORS = 5_000  # that are followed: a longer backlog is not counted
NEWEST = 20  # snapshots in which the first commits of a sink are searched
EMPTY = -1  # snapshot id of a position before the first snapshot
Answer = TypeVar("Answer")


class JavaSnapshots:
    """Iceberg's table object in a run's plan: that of the source with Spark's `description`, or of its sink (None).
    Every method may raise what py4j raises."""

    def __init__(self, run: Run, description: str | None) -> None:
        self._run, self._description = run, description
        self._table: Any = None  # the one that the query uses: nothing may change it
        self._as_json: Callable[[Any, bool], Any] | None = None

    def newest(self) -> str | None:
        """The snapshot that was current when the query last looked, as JSON; None of an empty table. Asked first."""
        if self._table is None:
            self._table = self._find()
        return self._text(self._table.currentSnapshot())

    def oldest(self) -> str | None:
        """The oldest ancestor of the current one that the table still has; a tag may keep an older one."""
        return self._text(self._iceberg().util.SnapshotUtil.oldestAncestor(self._table))

    def snapshot(self, version: int) -> str | None:
        """A snapshot by its id; None where it was expired."""
        return self._text(self._table.snapshot(version))

    def _text(self, snapshot: Any) -> str | None:
        if self._as_json is None:  # py4j asks the JVM for each part of the name
            self._as_json = self._iceberg().SnapshotParser.toJson
        return None if snapshot is None else str(self._as_json(snapshot, False))

    def _iceberg(self) -> Any:
        return self._run.session.spark.sparkContext._jvm.org.apache.iceberg

    def _find(self) -> Any:
        execution = execution_of(self._run)
        if self._description is None:
            return execution.sink().table()
        leaves = execution.logicalPlan().collectLeaves()
        for index in range(leaves.size()):
            leaf = leaves.apply(index)
            if hasattr(leaf, "stream") and str(leaf.stream().toString()) == self._description:
                return leaf.relation().table().table()
        raise LookupError("the plan of the query does not show the table")


class IcebergTable:
    """The snapshots of a table, by a `name` for messages. Every method raises FileError."""

    def __init__(self, snapshots: JavaSnapshots, name: str) -> None:
        self.name = name
        self.head: int | None = None  # id of the newest snapshot
        self.version: int | None = None  # snapshots have no numbers, and metadata need no checkpoint
        self.checkpoint: int | None = None
        self._snapshots = snapshots
        self._known: dict[int, IcebergSnapshot] = {}
        self._oldest: IcebergSnapshot | None = None

    def advance(self, known: int, now: float) -> None:
        """Reads what the query itself knows. `known` and `now` are not needed."""
        newest, self._oldest = self._read(self._snapshots.newest), self._read(self._snapshots.oldest)
        self.head = EMPTY if newest is None else newest.version
        if newest is not None:
            self._known[newest.version] = newest

    def follow(self, position: TablePosition) -> None:
        """Reads the snapshots back to a position, at most MAX_SNAPSHOTS that were not read before. FileError where the
        snapshot of the position is no ancestor of the newest one: it was expired, or the table was rolled back."""
        before = len(self._known)
        path = list(self._ancestors(position.version, MAX_SNAPSHOTS))
        cut = len(self._known) - before == MAX_SNAPSHOTS or len(path) == MAX_ANCESTORS
        if not cut and not _reaches(path, position.version):
            raise FileError(f"snapshot {position.version} is not in the history of the table")
        self._forget_others(path)

    def unread(self, position: TablePosition) -> TableRead | None:
        """What a reader at `position` has left; None until all snapshots since are known."""
        assert self.head is not None
        path = list(self._ancestors(position.version, 0))
        if not _reaches(path, position.version):
            return None
        begun = path.pop() if position.version != EMPTY else None
        new = [each for each in path if each.appends]
        left, size, rows = _rest(begun, position) if begun is not None else (0, 0, 0)
        since = begun.at if begun is not None and left else new[-1].at if new else None
        oldest = self._oldest if self._oldest is not None and self._oldest.parent is not None else None
        return TableRead(
            head=self.head, versions=len(new) + bool(left), files=_sum(left, [each.files for each in new]),
            bytes=_sum(size, [each.bytes for each in new]), rows=_sum(rows, [each.rows for each in new]),
            since=None if position.initial and left else since, oldest=oldest.version if oldest is not None else None,
            oldest_at=oldest.at if oldest is not None else None,
        )  # fmt: skip

    def commits(self, after: int | None) -> Sequence[IcebergSnapshot]:
        """The snapshots since the one with the id `after`, oldest first; of a table at first sight the newest ones."""
        known = EMPTY if after is None else after
        path = list(self._ancestors(known, NEWEST if after is None else MAX_SNAPSHOTS))
        self._forget_others(path)
        newest = [each for each in path if each.version != known]
        return newest[: NEWEST if after is None else None][::-1]

    def _forget_others(self, path: Sequence[IcebergSnapshot]) -> None:
        """Bounds what is remembered of a table that is written to for months."""
        if len(self._known) > 2 * MAX_ANCESTORS:
            self._known = {each.version: each for each in path}

    def _ancestors(self, version: int, unknown: int) -> Iterator[IcebergSnapshot]:
        """The snapshots from the newest back to a version, of which at most so many are read."""
        each = self.head
        for _ in range(MAX_ANCESTORS):
            if each is None or each == EMPTY:
                return
            if each not in self._known:
                found = self._read(partial(self._snapshots.snapshot, each)) if unknown else None
                if found is None:
                    return
                unknown -= 1
                self._known[each] = found
            yield self._known[each]
            if each == version:
                return
            each = self._known[each].parent

    def _read(self, question: Callable[[], str | None]) -> IcebergSnapshot | None:
        text = self._ask(question)
        try:
            return None if text is None else parse_snapshot(text)
        except ValueError as error:
            raise FileError(str(error)) from None

    def _ask(self, question: Callable[[], Answer]) -> Answer:
        try:
            return question()
        except Exception as error:
            raise FileError(reason_of(error)) from None


def _reaches(path: Sequence[IcebergSnapshot], version: int) -> bool:
    """Whether a path from the newest snapshot ends at a version, or at the first of all for a table's beginning."""
    if not path:
        return version == EMPTY
    return path[-1].version == version or (version == EMPTY and path[-1].parent is None)


def _rest(begun: IcebergSnapshot, position: TablePosition) -> tuple[int, int | None, int | None]:
    """Files, bytes and rows that are left of a snapshot; bytes and rows are not known of one that was read in part."""
    files = begun.all_files if position.initial else begun.files if begun.appends else 0
    left = max(0, (files or 0) - max(0, position.file))
    if left and (left < (files or 0) or position.initial):
        return left, None, None
    return left, begun.bytes if left else 0, begun.rows if left else 0


def _sum(first: int | None, more: Sequence[int | None]) -> int | None:
    known = [each for each in (first, *more) if each is not None]
    return sum(known) if len(known) == len(more) + 1 else None
