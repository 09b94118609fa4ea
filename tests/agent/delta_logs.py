"""A `_delta_log` on this machine's disk, written as Delta writes it, and a file system that counts what it is asked."""

import json
import os
from pathlib import Path
from typing import Any

from ledgerops.agent.hadoop_files import FileError, FileStatus
from tests.build import T0


class LocalFiles:
    """Real files. A path in `broken` cannot be read."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.broken: set[str] = set()

    def exists(self, path: str) -> bool:
        return self.status(path) is not None

    def find(self, path: str, limit: int) -> bytes | None:
        return self.read(path, limit) if self.exists(path) else None

    def listing(self, folder: str) -> str:
        self._ask(folder)
        return f"{{{','.join(map(str, Path(folder).iterdir()))}}}"

    def status(self, path: str) -> FileStatus | None:
        self._ask(path)
        try:
            found = Path(path).stat()
        except FileNotFoundError:
            return None
        return FileStatus(found.st_size, found.st_mtime)

    def read(self, path: str, limit: int) -> bytes:
        self._ask(path)
        with Path(path).open("rb") as file:
            return file.read(limit)

    def _ask(self, path: str) -> None:
        self.asked.append(Path(path).name)
        if self.broken & {Path(path).name, "*"}:
            raise FileError("AccessControlException: Permission denied")

    def questions(self) -> list[str]:
        """What was asked since the last call."""
        asked, self.asked = self.asked, []
        return asked


class DeltaLog:
    """The log of a table: version n is committed at T0 + 10 n."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.log = folder, folder / "_delta_log"
        self.log.mkdir(parents=True)

    def commit(
        self, version: int, *sizes: int, by: tuple[str, int] | None = None, new: bool = True, changes: int = 0
    ) -> None:
        """A version with files of such sizes, by a batch of a streaming query or by anybody; without `new` rows, as
        OPTIMIZE writes them; with so many files of the change feed."""
        info: dict[str, Any] = {"operation": "WRITE", "operationMetrics": {"numFiles": str(len(sizes))}}
        if by is not None:
            metrics = {"numAddedFiles": str(len(sizes)), "numOutputRows": str(10 * len(sizes)), "numOutputBytes": "7"}
            parameters = {"outputMode": "Append", "queryId": by[0], "epochId": str(by[1])}
            info = {"operation": "STREAMING UPDATE", "operationParameters": parameters, "operationMetrics": metrics}
        actions: list[dict[str, Any]] = [{"commitInfo": info}]
        actions += [{"add": {"path": f"p{n}", "size": size, "dataChange": new}} for n, size in enumerate(sizes)]
        actions += [{"cdc": {"path": f"_change_data/c{n}", "size": 9, "dataChange": False}} for n in range(changes)]
        entry = self.log / f"{version:020}.json"
        entry.write_text("\n".join(map(json.dumps, actions)))
        os.utime(entry, (T0 + 10 * version, T0 + 10 * version))

    def checkpoint(self, version: int) -> None:
        (self.log / "_last_checkpoint").write_text(json.dumps({"version": version, "size": 9}))

    def expire(self, before: int) -> None:
        """Deletes the entries before a version, as Delta's log retention does."""
        for version in range(before):
            (self.log / f"{version:020}.json").unlink(missing_ok=True)
