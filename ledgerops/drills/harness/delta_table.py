"""A Delta table that is written by its protocol and without Spark, so that it costs the application nothing."""

import json
import os
import threading
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

TYPES = {"id": "string", "key": "string", "amount": "double", "event_time": "timestamp"}
Action = Mapping[str, Any]


class DeltaTable:
    """A table of the feeder's rows in a folder, and what its owners do to it. Several threads may use one."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._log = folder, folder / "_delta_log"
        self._columns = dict(TYPES)
        self.version = -1  # the newest that was committed here
        self._live: dict[str, Action] = {}  # files of the newest version, of those that were written here
        self._lock = threading.RLock()
        self._log.mkdir(parents=True, exist_ok=True)
        self._commit([{"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}}, self._metadata()], "CREATE TABLE")

    def append(self, rows: list[dict[str, Any]], pinned: float = 0.0) -> None:
        """Commits rows as one file. `pinned` is not needed: a table has no partitions."""
        with self._lock:
            self._commit([self._add(self._write(rows), len(rows))], "WRITE")

    def add_column(self) -> None:
        """Adds a column, as a writer that merges its schema does."""
        with self._lock:
            self._columns["added"] = "string"
            self._commit([self._metadata()], "SET COLUMNS")

    def compact(self) -> None:
        """Rewrites all files as one, without new rows, as OPTIMIZE does. The old ones stay."""
        with self._lock:
            old = list(self._live)
            rows = [row for path in old for row in pq.read_table(self._folder / path).to_pylist()]
            removed = [self._remove(path) for path in old]
            self._commit([*removed, self._add(self._write(rows), len(rows), changes=False)], "OPTIMIZE")

    def vacuum(self) -> None:
        """Compacts the table and deletes the files that it no longer needs, those that nobody has read included."""
        with self._lock:
            old = list(self._live)
            self.compact()
            for path in old:
                (self._folder / path).unlink()

    def _metadata(self) -> Action:
        fields = [
            {"name": name, "type": kind, "nullable": True, "metadata": {}} for name, kind in self._columns.items()
        ]
        return {
            "metaData": {
                "id": "00000000-0000-4000-8000-000000000000",
                "format": {"provider": "parquet", "options": {}},
                "schemaString": json.dumps({"type": "struct", "fields": fields}),
                "partitionColumns": [],
                "configuration": {},
            }
        }

    def _write(self, rows: Iterable[Mapping[str, Any]]) -> str:
        """Writes rows to a data file and gives its name."""
        path = f"part-{time.time_ns()}.parquet"
        kinds = {"string": pa.string(), "double": pa.float64(), "timestamp": pa.timestamp("us", "UTC")}
        columns = [(name, kinds[kind]) for name, kind in TYPES.items()]
        pq.write_table(pa.Table.from_pylist(list(rows)).cast(pa.schema(columns)), self._folder / path)
        return path

    def _add(self, path: str, rows: int, changes: bool = True) -> Action:
        found = (self._folder / path).stat()
        return {
            "add": {
                "path": path,
                "partitionValues": {},
                "size": found.st_size,
                "modificationTime": round(found.st_mtime * 1000),
                "dataChange": changes,
                "stats": json.dumps({"numRecords": rows}),
            }
        }

    def _remove(self, path: str) -> Action:
        return {"remove": {"path": path, "deletionTimestamp": time.time_ns() // 1_000_000, "dataChange": False}}

    def _commit(self, actions: list[Action], operation: str) -> None:
        """Adds a version after the newest one, whoever has written that."""
        now = time.time_ns() // 1_000_000
        info = {"commitInfo": {"timestamp": now, "operation": operation, "operationParameters": {}}}
        part = self._log / f".{time.time_ns()}.json"
        part.write_text("".join(json.dumps(action) + "\n" for action in [info, *actions]), "utf-8")
        while True:
            self.version += 1
            try:
                os.link(part, self._log / f"{self.version:020}.json")
                break
            except FileExistsError:
                continue
        part.unlink()
        for action in actions:
            if "remove" in action:
                self._live.pop(action["remove"]["path"], None)
            if "add" in action:
                self._live[action["add"]["path"]] = action
