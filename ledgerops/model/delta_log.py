"""One commit of a Delta table, from the text of its entry in `_delta_log`: a line of JSON for each action."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ledgerops.model.records import MAX_COUNT, LoggedCommit, TablePosition

STREAMING = "STREAMING UPDATE"  # the operation of a streaming query's sink
ROWS = ("numOutputRows",)
FILES = ("numAddedFiles", "numFiles", "numTargetFilesAdded")  # of a stream, of a write, of MERGE
BYTES = ("numOutputBytes", "numAddedBytes")


@dataclass(frozen=True, slots=True)
class DeltaCommit(LoggedCommit):
    """What one version added. `sizes` are the bytes of the files with new rows, in the order in which a stream reads
    them; None where the entry was cut. `changes` are its files of the change feed, which a stream reads all at once."""

    sizes: tuple[int, ...] | None
    changes: int = 0

    def unread(self, position: TablePosition) -> tuple[int, int] | None:
        """Files and bytes that a reader at `position` has left of this version; None where that is not known."""
        begun = self.version == position.version and position.file >= 0
        if self.sizes is None:
            return None if begun or self.files is None or self.bytes is None else (self.files, self.bytes)
        if begun and 0 < self.changes <= position.file + 1:
            return 0, 0
        left = self.sizes[position.file + 1 :] if begun else self.sizes
        return len(left), sum(left)


def parse_commit(version: int, text: str, modified: float, whole: bool = True) -> DeltaCommit:
    """The commit of a version from its entry, `modified` when the file was written (epoch seconds). Lines that are no
    JSON are left out; of an entry that is not `whole` only what its first line sums up is known."""
    actions = list(_actions(text))
    info: Mapping[str, Any] = next((each["commitInfo"] for each in actions if _is(each, "commitInfo")), {})
    added = [each["add"] for each in actions if _is(each, "add")]
    new = tuple(_size(each) for each in added if each.get("dataChange") is not False)
    streamed = info.get("operation") == STREAMING
    parameters = info.get("operationParameters") if streamed else None
    parameters = parameters if isinstance(parameters, Mapping) else {}
    metrics = info.get("operationMetrics")
    metrics = metrics if isinstance(metrics, Mapping) else {}
    at = whole_number(info.get("inCommitTimestamp"))
    return DeltaCommit(
        version=version,
        at=modified if at is None else at / 1000,
        batch_id=whole_number(parameters.get("epochId")),
        rows=_first(metrics, ROWS),
        files=len(added) if whole else _first(metrics, FILES),
        bytes=sum(map(_size, added)) if whole else _first(metrics, BYTES),
        query_id=str(parameters["queryId"]) if parameters.get("queryId") else None,
        sizes=new if whole else None,
        changes=sum(_is(each, "cdc") for each in actions),
    )


def last_checkpoint(text: str) -> int | None:
    """The version in `_delta_log/_last_checkpoint`; None where it has none."""
    return next((whole_number(each.get("version")) for each in _actions(text)), None)


def _actions(text: str) -> Iterator[Mapping[str, Any]]:
    for line in text.split("\n"):  # and at no other sign that ends a line elsewhere: values may have it
        try:
            action = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(action, Mapping):
            yield action


def _is(action: Mapping[str, Any], kind: str) -> bool:
    return isinstance(action.get(kind), Mapping)


def _size(added: Mapping[str, Any]) -> int:
    return whole_number(added.get("size")) or 0


def _first(metrics: Mapping[str, Any], names: tuple[str, ...]) -> int | None:
    return next((number for name in names if (number := whole_number(metrics.get(name))) is not None), None)


def whole_number(value: object) -> int | None:
    """A count, as a number or as text; None for anything else."""
    if isinstance(value, str) and value.isascii() and value.isdecimal() and len(value) < 20:
        value = int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < MAX_COUNT else None
