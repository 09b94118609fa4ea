"""The files that each batch of a file source read, from the checkpoint, in a thread of its own.

Spark's progress names neither the files of a batch nor those that wait. The checkpoint has the former with their times
of modification. It is read where it is a folder of this machine: the entry of the newest batch alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import orjson

from ledgerops.agent.plan import checkpoint_of
from ledgerops.agent.queue import EventQueue
from ledgerops.checkpoint.file_log import TakenFiles, local_path, read_entry
from ledgerops.model.records import BatchFiles, FilesRead
from ledgerops.runtime.runs import Run, Runs


class FileCollector:
    """Asks Spark once for the place of each checkpoint. One elsewhere, or that cannot be read, is left alone."""

    def __init__(self, queue: EventQueue, runs: Runs, checkpoint: Callable[[Run], str | None] = checkpoint_of) -> None:
        self._queue, self._runs, self._checkpoint = queue, runs, checkpoint
        self._places: dict[str, Path | None] = {}  # run id -> checkpoint
        self._looked: dict[str, int] = {}  # run id -> batch
        self._first: dict[tuple[str, str], Path] = {}  # (run id, source) -> a file of the first batch that was read

    def collect(self) -> None:
        """Queues the files of the newest batch of each run that reads files, once for each batch. Raises nothing."""
        runs = self._runs.runs()
        for run in runs:
            batch = run.files
            if batch is None or not batch.sources or self._looked.get(run.run_id) == batch.batch_id:
                continue
            self._looked[run.run_id] = batch.batch_id
            place = self._place(run)
            found = {} if place is None else self._read(run.run_id, place, batch.sources)
            if found:
                record = BatchFiles(run.run_id, batch.batch_id, found)
                self._queue.put("files", orjson.dumps(record), run.query, run.session)
        on = {run.run_id for run in runs}
        self._places = {run_id: place for run_id, place in self._places.items() if run_id in on}
        self._looked = {run_id: batch for run_id, batch in self._looked.items() if run_id in on}
        self._first = {key: file for key, file in self._first.items() if key[0] in on}

    def _place(self, run: Run) -> Path | None:
        if run.run_id not in self._places:
            uri = self._checkpoint(run)
            self._places[run.run_id] = local_path(uri) if uri else None
        return self._places[run.run_id]

    def _read(self, run_id: str, place: Path, sources: Mapping[str, tuple[int, int]]) -> dict[str, FilesRead]:
        found = {}
        for name, (number, entry) in sources.items():
            try:
                taken = read_entry(place, number, entry)
            except OSError:  # not ours to read
                continue
            if taken is not None:
                changed = self._folder_changed((run_id, name), taken)
                found[name] = FilesRead(taken.files, taken.oldest, taken.newest, changed)
        return found

    def _folder_changed(self, key: tuple[str, str], taken: TakenFiles) -> float | None:
        """When the folder of the newest file last got one; None where files also leave it, or it is elsewhere."""
        file = local_path(taken.path)
        if file is None:
            return None
        first = self._first.setdefault(key, file)
        try:
            first.stat()
            return file.parent.stat().st_mtime
        except (OSError, ValueError):  # gone, or a path that no file can have
            return None
