"""The files that each batch of a file source read, from the checkpoint, in a thread of its own.

Spark's progress names neither the files of a batch nor those that wait. The checkpoint has the former with their
modification times. Only the newest batch's entry is read, and only where the checkpoint is a folder of this machine.
"""

from collections.abc import Callable
from pathlib import Path

import orjson

from ledgerops.agent.plan import checkpoint_of
from ledgerops.agent.queue import EventQueue
from ledgerops.checkpoint.file_log import TakenFiles, read_entry, read_named_entry
from ledgerops.input_files import local_path
from ledgerops.model.records import BatchFiles, FilesRead
from ledgerops.runtime.runs import FileEntries, Run, Runs


class FileCollector:
    """Asks Spark once where each checkpoint is. One on another machine, or that cannot be read, is ignored."""

    def __init__(self, queue: EventQueue, runs: Runs, checkpoint: Callable[[Run], str | None] = checkpoint_of) -> None:
        self._queue, self._runs, self._checkpoint = queue, runs, checkpoint
        self._folders: dict[str, Path | None] = {}  # run id -> checkpoint, None where it cannot be read
        self._read_batch: dict[str, int] = {}  # run id -> newest batch that was read
        self._first_files: dict[tuple[str, str], Path] = {}  # (run id, source) -> a file of the first batch read

    def collect(self) -> None:
        """Queues the files of the newest batch of each run that reads files, once for each batch. Raises nothing."""
        runs = self._runs.recent()
        for run in runs:
            batch = run.files
            if batch is None or not batch.sources or self._read_batch.get(run.run_id) == batch.batch_id:
                continue
            self._read_batch[run.run_id] = batch.batch_id
            if run.run_id not in self._folders:
                uri = self._checkpoint(run)
                self._folders[run.run_id] = local_path(uri) if uri else None
            folder = self._folders[run.run_id]
            found = {} if folder is None else self._read(run.run_id, folder, batch)
            if found:
                record = BatchFiles(run.run_id, batch.batch_id, found)
                self._queue.put("files", orjson.dumps(record), run.query, run.session)
        active = {run.run_id for run in runs}
        self._folders = {run_id: folder for run_id, folder in self._folders.items() if run_id in active}
        self._read_batch = {run_id: batch for run_id, batch in self._read_batch.items() if run_id in active}
        self._first_files = {key: file for key, file in self._first_files.items() if key[0] in active}

    def _read(self, run_id: str, folder: Path, batch: FileEntries) -> dict[str, FilesRead]:
        found = {}
        for name, (number, entry, described) in batch.sources.items():
            try:
                if (folder / "sources" / str(number)).is_dir():
                    taken = read_entry(folder, number, entry)
                else:
                    taken = read_named_entry(folder, described, entry)
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
        first = self._first_files.setdefault(key, file)
        try:
            first.stat()
            return file.parent.stat().st_mtime
        except (OSError, ValueError):  # gone, or a path that no file can have
            return None
